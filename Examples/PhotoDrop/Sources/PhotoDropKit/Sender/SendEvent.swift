import Loveseat
import PhotoDropCore

/// What happens while photos are sent.
package enum SendEvent: Sendable {
    case connecting(String)
    case photo(PhotoProgress)
    /// The connection broke; the replicator tries again.
    case waiting(String)
    case done(SendSummary)

    package var json: JSONObject {
        switch self {
        case .connecting(let address): return ["event": "connecting", "address": .string(address)]
        case .photo(let photo): return photo.json
        case .waiting(let reason): return ["event": "waiting", "reason": .string(reason)]
        case .done(let summary): return summary.json
        }
    }
}

/// How far a photo is.
package struct PhotoProgress: Hashable, Sendable {
    package enum State: Hashable, Sendable {
        case queued
        case sending
        /// The receiver has stored it.
        case stored
        case failed(String)

        package var name: String {
            switch self {
            case .queued: "queued"
            case .sending: "sending"
            case .stored: "stored"
            case .failed: "failed"
            }
        }
    }

    package let id: String
    package let name: String
    package let size: UInt64
    package var state = State.queued
    /// The bytes that were handed to the socket.
    package var sent: UInt64 = 0

    package init(id: String, name: String, size: UInt64) {
        self.id = id
        self.name = name
        self.size = size
    }

    package var json: JSONObject {
        var json: JSONObject = [
            "event": "photo", "id": .string(id), "name": .string(name), "state": .string(state.name),
            "sent": JSONValue(sent), "size": JSONValue(size),
        ]
        if case .failed(let error) = state { json["error"] = .string(error) }
        return json
    }
}

/// The result of sending.
package struct SendSummary: Hashable, Sendable {
    package var stored = 0
    package var failed = 0
    /// The bytes of the stored photos.
    package var bytes: UInt64 = 0
    package var seconds = 0.0

    package var json: JSONObject {
        [
            "event": "done", "stored": JSONValue(stored), "failed": JSONValue(failed),
            "bytes": JSONValue(bytes),
            "seconds": JSONValue((seconds * 1_000).rounded() / 1_000),
        ]
    }
}
