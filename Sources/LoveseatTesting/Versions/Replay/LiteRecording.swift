private import Foundation
package import LoveseatBLIP
package import LoveseatModel

/// A recorded story of real peers of Couchbase Lite 4: what was done to their databases, what was said over their connections, and what each had
/// after every step (Tests/Fixtures/lite).
package struct LiteRecording: Sendable {
    package enum Event: Sendable {
        case message(Spoken)
        /// Something was done to the passive peer, or to the network.
        case act(JSONValue)
        /// The lines of an upgrade request or of its answer.
        case http(isActive: Bool, [String])
    }

    /// A message.
    package struct Spoken: Sendable {
        package let isActive: Bool
        package let type: MessageType
        package let number: UInt64
        package let message: Message
    }

    /// The events of each connection.
    package private(set) var connections: [[Event]] = []
    /// The sources, the steps and the final states.
    package let expected: JSONValue

    /// Creates a recording from the texts of its two files.
    ///
    /// - Throws: If they cannot be read.
    package init(trace: String, expected: String) throws {
        self.expected = try JSONElement(parsing: Array(expected.utf8)).value
        var readers: [String: MessageReader] = [:]
        for line in trace.split(separator: "\n") {
            let event = try JSONElement(parsing: Array(line.utf8)).value
            if event["connection"]?.string == "opened" {
                connections.append([])
                readers = ["active": MessageReader(), "passive": MessageReader()]
            }
            if let act = event["act"] { connections[connections.count - 1].append(.act(act)) }
            if let lines = event["http"]?.array?.compactMap(\.string) {
                let isActive = event["dir"]?.string == "active"
                connections[connections.count - 1].append(.http(isActive: isActive, lines))
            }
            guard let direction = event["dir"]?.string,
                let bytes = event["frame"]?.string.flatMap({ Data(base64Encoded: $0) }),
                let (frame, message, _) = try readers[direction]?.read(Array(bytes)), let message
            else { continue }
            let spoken = Spoken(
                isActive: direction == "active",
                type: frame.type,
                number: frame.number,
                message: message
            )
            connections[connections.count - 1].append(.message(spoken))
        }
    }

    /// The sub-protocols that an upgrade request offers, or that its answer accepts; nil if it is refused.
    func protocols(_ connection: Int, isActive: Bool) -> [String]? {
        let lines = connections[connection - 1].lazy.compactMap { event in
            if case .http(isActive, let lines) = event { lines } else { nil }
        }.first
        let header = "Sec-WebSocket-Protocol: "
        let line = lines?.first { $0.hasPrefix(header) }
        return line.map { $0.dropFirst(header.count).split(separator: ",").map(String.init) }
    }

    /// The messages of a connection, by its number from 1.
    func messages(_ connection: Int) -> [Spoken] {
        guard connections.indices.contains(connection - 1) else { return [] }
        return connections[connection - 1].compactMap {
            if case .message(let spoken) = $0 { spoken } else { nil }
        }
    }

    /// The name of a peer in its versions; nil for one that does not occur.
    func source(of peer: String) -> SourceID? {
        expected["sources"]?[peer]?.string.flatMap { try? SourceID($0) }
    }

    /// The release of a peer in a connection.
    func release(isActive: Bool) -> LiteRelease {
        let name = expected["name"]?.string ?? ""
        if name.hasSuffix("-41-40") { return isActive ? .release41 : .release40 }
        if name.hasSuffix("-40-41") { return isActive ? .release40 : .release41 }
        return name.hasSuffix("-41") ? .release41 : .release40
    }

    /// The content of every blob that went over the wire, by digest.
    func blobs() -> [String: [UInt8]] {
        var found: [String: [UInt8]] = [:]
        for connection in connections.indices {
            let messages = messages(connection + 1)
            for request in messages where request.type == .request {
                guard request.message.profile == "getAttachment",
                    let digest = request.message.properties["digest"]
                else { continue }
                let answer = messages.first {
                    $0.type == .response && $0.number == request.number && $0.isActive != request.isActive
                }
                found[digest] = answer?.message.body
            }
        }
        return found
    }
}
