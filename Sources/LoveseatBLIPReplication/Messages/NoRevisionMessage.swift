import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// `norev`: a revision that was announced or agreed to does not come (replication.md §9.3).
struct NoRevisionMessage: Hashable {
    var collection: Int?
    let documentID: String
    let sequence: RemoteSequence?
    /// Nil where the peer does not say.
    var revision: RevisionName?
    /// As in HTTP; 0 if the peer does not say.
    let status: Int
    let reason: String

    init(_ change: LocalChange, status: Int, reason: String, collection: Int?) {
        documentID = change.documentID
        sequence = RemoteSequence(change.sequence)
        revision = change.name
        (self.status, self.reason, self.collection) = (status, reason, collection)
    }

    /// Nil for a message that names no document.
    init?(_ message: Message, _ names: RevisionNaming) {
        guard let id = message.properties["id"] else { return nil }
        documentID = id
        sequence = (message.properties["sequence"] ?? message.properties["seq"]).flatMap {
            RemoteSequence(json: $0)
        }
        revision = message.properties["rev"].flatMap(names.received)
        status = message.properties.int("error") ?? 0
        reason = message.properties["reason"] ?? "error \(status)"
    }

    var message: Message {
        var message = Message(.noRevision, collection: collection, noReply: true)
        message.properties["id"] = documentID
        message.properties["rev"] = revision?.text
        message.properties["sequence"] = sequence?.text
        message.properties["error"] = String(status)
        message.properties["reason"] = reason
        return message
    }
}
