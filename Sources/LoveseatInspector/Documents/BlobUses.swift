import LoveseatCore
import LoveseatModel

/// The blobs that documents refer to, and which documents those are.
struct BlobUses: Sendable {
    static let maximumBlobs = 20_000
    static let maximumReferrers = 20

    struct Use: Sendable {
        let blob: BlobReference
        /// The first documents that refer to it.
        var referrers: [(collection: String, document: String)]
        var count: Int
    }

    private(set) var uses: [Use] = []
    private var positions: [BlobDigest: Int] = [:]
    /// Whether there are more than ``maximumBlobs``.
    private(set) var isCut = false

    /// Adds a reference; false if there is no room for more.
    mutating func add(_ blob: BlobReference, in document: String, of collection: String) -> Bool {
        if let position = positions[blob.digest] {
            uses[position].count += 1
            if uses[position].referrers.count < Self.maximumReferrers {
                uses[position].referrers.append((collection, document))
            }
            return true
        }
        guard uses.count < Self.maximumBlobs else {
            isCut = true
            return false
        }
        positions[blob.digest] = uses.count
        uses.append(Use(blob: blob, referrers: [(collection, document)], count: 1))
        return true
    }

    /// Reads the references of a whole database. This blocks the thread.
    static func all(in database: Database) throws -> BlobUses {
        var uses = BlobUses()
        for collection in try DatabaseInspection(database).collections() {
            try DatabaseInspection(database).forEachBlob(in: collection) { document, blob in
                uses.add(blob, in: document, of: collection.fullName)
            }
        }
        // The largest ones first: they are what a reader looks for.
        uses.uses.sort {
            ($1.blob.length ?? 0, $0.blob.digest.text) < ($0.blob.length ?? 0, $1.blob.digest.text)
        }
        return uses
    }
}

extension BlobReference {
    /// How the page shows a blob.
    var inspectorJSON: JSONObject {
        var json: JSONObject = ["digest": .string(digest.text)]
        json["length"] = length.map { JSONValue($0) }
        json["type"] = contentType.map { .string(DocumentRow.cut($0)) }
        return json
    }
}
