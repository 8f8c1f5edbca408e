import Loveseat
import PhotoDropCore

/// What happens in a session, for the terminal, `--json` and the page.
package enum DropEvent: Sendable {
    case sender(SenderStatus)
    /// A part of a photo has arrived.
    case progress(photo: String, sent: UInt64, size: UInt64?)
    case saved(SavedPhoto)
    /// A photo was forgotten. `file`: the name of its file; nil if it had none.
    case gone(id: String, file: String? = nil)
    case failed(id: String, name: String, error: String)
    case remark(String)
    case end(reason: String)

    /// The name of the event in streams.
    package var name: String {
        switch self {
        case .sender: "sender"
        case .progress: "progress"
        case .saved: "photo"
        case .gone: "gone"
        case .failed: "failed"
        case .remark: "remark"
        case .end: "end"
        }
    }

    package var json: JSONObject {
        switch self {
        case .sender(let sender): return sender.json
        case .progress(let photo, let sent, let size):
            var json: JSONObject = ["photo": .string(photo), "sent": JSONValue(sent)]
            if let size { json["size"] = JSONValue(size) }
            return json
        case .saved(let photo): return photo.json
        case .gone(let id, let file):
            var json: JSONObject = ["id": .string(id)]
            json["file"] = file.map { .string($0) }
            return json
        case .failed(let id, let name, let error):
            return ["id": .string(id), "name": .string(name), "error": .string(error)]
        case .remark(let text): return ["text": .string(text)]
        case .end(let reason): return ["reason": .string(reason)]
        }
    }

    /// Whether a reader that connects again must not miss it.
    var isKept: Bool {
        switch self {
        case .saved, .gone, .failed, .end: true
        case .sender, .progress, .remark: false
        }
    }
}

/// A photo that was written to the folder.
package struct SavedPhoto: Hashable, Sendable {
    package let id: String
    /// The name of its file.
    package let file: String
    package let size: UInt64
    package let type: ImageType
    package let digest: BlobDigest
    package let width: Int?
    package let height: Int?
    package let sender: SenderID?
    package let senderName: String?
    package let hasThumbnail: Bool
    /// Whether the folder had the same content already.
    package let isDuplicate: Bool
    /// Whether an earlier process of the session saved it.
    package let isRestored: Bool

    package var json: JSONObject {
        var json: JSONObject = [
            "id": .string(id), "name": .string(file), "size": JSONValue(size),
            "type": .string(type.mediaType), "digest": .string(digest.hexadecimal),
            "thumb": .bool(hasThumbnail),
        ]
        if isDuplicate { json["duplicate"] = true }
        if let width, let height { (json["width"], json["height"]) = (JSONValue(width), JSONValue(height)) }
        if let sender { json["sender"] = .string(sender.text) }
        if let senderName { json["senderName"] = .string(senderName) }
        return json
    }
}

/// How far a sender is.
package struct SenderStatus: Hashable, Sendable {
    package enum State: String, Hashable, Sendable {
        case sending, away, done
    }

    package let id: SenderID
    package var name: String?
    package var state = State.sending
    /// The photos that it announced.
    package var count = 0
    /// The bytes that it announced.
    package var bytes: UInt64 = 0
    /// The photos that are here.
    package var received = 0
    /// The bytes that are here.
    package var receivedBytes: UInt64 = 0

    package init(id: SenderID) { self.id = id }

    package var json: JSONObject {
        var json: JSONObject = [
            "id": .string(id.text), "state": .string(state.rawValue), "count": JSONValue(count),
            "bytes": JSONValue(bytes), "received": JSONValue(received),
            "receivedBytes": JSONValue(receivedBytes),
        ]
        if let name { json["name"] = .string(name) }
        return json
    }
}
