import LoveseatBLIP
import LoveseatModel

/// `getCheckpoint` (replication.md §5.3).
struct GetCheckpointMessage: Hashable {
    var collection: Int?
    /// The ID under which the peer keeps the checkpoint.
    let id: String

    init(id: String, collection: Int?) { (self.id, self.collection) = (id, collection) }

    /// - Throws: ``ReplyError`` for a message that names no checkpoint.
    init(_ message: Message) throws(ReplyError) { id = try message.checkpointID }

    var message: Message {
        var message = Message(.getCheckpoint, collection: collection)
        message.checkpointID(id)
        return message
    }

    /// The checkpoint that the peer keeps.
    struct Answer: Hashable {
        /// Nil if it does not say.
        let revision: String?
        let body: [UInt8]

        init(revision: Int, body: JSONText) {
            (self.revision, self.body) = (CheckpointRevision.text(revision), body.bytes)
        }

        init(_ message: Message) { (revision, body) = (message.checkpointRevision, message.body) }

        var message: Message { Message(checkpointRevision: revision, body: body) }
    }
}

/// `setCheckpoint` (replication.md §5.4).
struct SetCheckpointMessage: Hashable {
    var collection: Int?
    let id: String
    /// The revision that it replaces; empty for none.
    let revision: String
    let body: JSONText

    init(id: String, replacing revision: String, body: JSONText, collection: Int?) {
        (self.id, self.revision, self.body, self.collection) = (id, revision, body, collection)
    }

    /// - Throws: ``ReplyError`` for a message that names no checkpoint, or whose body is too long or not JSON.
    init(_ message: Message) throws(ReplyError) {
        id = try message.checkpointID
        guard message.body.count <= ReplicationTuning.maximumCheckpointSize else {
            throw ReplyError(
                "HTTP",
                413,
                "a checkpoint may have \(ReplicationTuning.maximumCheckpointSize) bytes"
            )
        }
        guard let body = try? JSONText(message.body) else {
            throw ReplyError("BLIP", 400, "invalid checkpoint body")
        }
        (self.body, revision) = (body, message.checkpointRevision ?? "")
    }

    var message: Message {
        var message = Message(.setCheckpoint, collection: collection, body: body.bytes)
        message.checkpointID(id)
        message.checkpointRevision(revision)
        return message
    }

    /// The checkpoint was saved under this revision.
    struct Answer: Hashable {
        let revision: String

        init(revision: Int) { self.revision = CheckpointRevision.text(revision) }

        init(_ message: Message) { revision = message.checkpointRevision ?? "" }

        var message: Message { Message(checkpointRevision: revision) }
    }
}

extension Message {
    private static let idProperty = "client"
    private static let revisionProperty = "rev"

    fileprivate init(checkpointRevision: String?, body: [UInt8] = []) {
        self.init(body: body)
        properties[Self.revisionProperty] = checkpointRevision
    }

    fileprivate var checkpointRevision: String? { properties[Self.revisionProperty] }

    fileprivate mutating func checkpointRevision(_ revision: String) {
        properties[Self.revisionProperty] = revision
    }

    fileprivate mutating func checkpointID(_ id: String) { properties[Self.idProperty] = id }

    fileprivate var checkpointID: String {
        get throws(ReplyError) {
            guard let id = properties[Self.idProperty], !id.isEmpty, id.utf8.count <= 1_024 else {
                throw ReplyError("BLIP", 400, "missing checkpoint ID")
            }
            return id
        }
    }
}

/// The names that our checkpoints' revisions get: `1-cc`, `2-cc`, … (replication.md §5.4).
enum CheckpointRevision {
    static func text(_ revision: Int) -> String { "\(revision)-cc" }

    /// The number of a checkpoint's revision; 0 for an empty text, nil for a text that is not one of our names.
    static func number(_ text: String) -> Int? {
        guard !text.isEmpty else { return 0 }
        guard text.hasSuffix("-cc") else { return nil }
        return Int(text.dropLast(3))
    }
}
