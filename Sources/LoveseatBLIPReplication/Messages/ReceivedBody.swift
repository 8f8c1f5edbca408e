import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// The content of a received body (replication.md §9.4, steps 6 to 9).
struct ReceivedBody: Sendable {
    let body: JSONText
    /// Blobs that the body refers to.
    let blobs: [BlobReference]
    /// The document left every channel that this peer may see.
    let isRemoved: Bool
    /// The body names content of blobs that the peer's table of attachments does not list.
    let contradictsTable: Bool
    /// The names of properties that are not stored, since they belong to replication.
    let leftOut: [String]

    /// `generation`: of the revision. With nil, the table of attachments decides in every case.
    ///
    /// - Throws: ``ReplyError`` for bytes that are not a JSON object, or name a blob that the table does not.
    init(_ bytes: [UInt8], generation: UInt32?) throws(ReplyError) {
        let stored = try Attachments.stored(bytes, generation: generation)
        blobs = BlobReference.all(in: stored.body)
        if let listed = stored.listed?.union(stored.preferred),
            let missing = blobs.first(where: { !listed.contains(ExactText($0.digest.text)) })
        {
            throw ReplyError("LiteCore", 7, "blob \(missing.digest) is not among the attachments")
        }
        body = stored.body
        isRemoved = stored.isRemoved
        contradictsTable = !stored.preferred.isEmpty
        leftOut = stored.leftOut
    }
}

extension ReceivedBody {
    /// The report about properties that were left out; nil if none were.
    func leftOutReport(of documentID: String, _ collection: Int) -> ReplicationReport? {
        leftOut.isEmpty
            ? nil : .propertiesLeftOut(collection: collection, documentID: documentID, names: leftOut)
    }
}
