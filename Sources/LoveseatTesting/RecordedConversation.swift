import Foundation
package import LoveseatBLIP
import LoveseatModel

/// One direction of one connection: frames to whole messages, without knowing what was asked.
package struct MessageReader {
    private var decoder = FrameDecoder(largestFrame: 24 << 20)
    private var partial: [String: (message: IncomingMessage, frames: Int)] = [:]

    package init() {}

    /// Returns the last frame of a message with the message, or an acknowledgement without; nil in between.
    package mutating func read(_ bytes: [UInt8]) throws -> (
        frame: IncomingFrame, message: Message?, frames: Int
    )? {
        guard let frame = try decoder.decode(bytes) else { return nil }
        guard [.request, .response, .error].contains(frame.type) else { return (frame, nil, 1) }
        let key = "\(frame.type == .request) \(frame.number)"
        var entry = partial.removeValue(forKey: key) ?? (IncomingMessage(frame), 0)
        _ = try entry.message.add(frame)
        entry.frames += 1
        if frame.flags.contains(.moreComing) {
            partial[key] = entry
            return nil
        }
        return (frame, entry.message.message, entry.frames)
    }
}

/// The messages of two real peers over one connection, in the order of arrival.
package struct RecordedConversation: Sendable {
    package struct Entry: Sendable {
        package let isActive: Bool
        package let type: MessageType
        package let number: UInt64
        package let message: Message
    }

    package private(set) var entries: [Entry] = []

    /// Reads every connection of a trace, the lines of a `.trace.jsonl`.
    package static func all(inTrace text: String) throws -> [RecordedConversation] {
        var conversations: [RecordedConversation] = []
        var readers: [String: MessageReader] = [:]
        for line in text.split(separator: "\n") {
            let event = try JSONElement(parsing: Array(line.utf8))
            if event["connection"]?.string == "opened" {
                conversations.append(RecordedConversation())
                readers = ["active": MessageReader(), "passive": MessageReader()]
            }
            guard let text = event["frame"]?.string, let direction = event["dir"]?.string,
                let bytes = Data(base64Encoded: text),
                let (frame, message, _) = try readers[direction]?.read(Array(bytes)), let message
            else { continue }
            conversations[conversations.count - 1].entries.append(
                Entry(
                    isActive: direction == "active",
                    type: frame.type,
                    number: frame.number,
                    message: message
                )
            )
        }
        return conversations
    }

    /// The requests of one side.
    package func requests(ofActive isActive: Bool, _ profile: String? = nil) -> [Message] {
        entries.filter { $0.isActive == isActive && $0.type == .request }.map(\.message).filter {
            profile == nil || $0.profile == profile
        }
    }

    /// The answer to a request of one side.
    package func answer(toActive isActive: Bool, number: UInt64) -> Entry? {
        entries.first { $0.isActive != isActive && $0.type != .request && $0.number == number }
    }

    /// A request with its number.
    package func entry(ofActive isActive: Bool, where matches: (Message) -> Bool) -> Entry? {
        entries.first { $0.isActive == isActive && $0.type == .request && matches($0.message) }
    }
}
