package import LoveseatBLIP
import LoveseatModel

/// A connection of the gateway's twin in frames.
///
/// Everything that it says goes out as soon as the link takes it, the frames of all messages interleaved: a gateway waits for
/// no answer (gateway.md 52).
package final class GatewayLine {
    /// A revision that the client sent.
    package struct Pushed: Hashable, Sendable {
        package let id: String
        package let revision: String
        package let isDeleted: Bool
        package let body: [UInt8]
    }

    package let session: GatewaySession
    /// Called when a revision of the client is accepted.
    package var onTaken: (Pushed) -> Void = { _ in }
    /// Called when a revision of the client is refused.
    package var onRefused: (Pushed, ReplyError) -> Void = { _, _ in }
    /// Called with every message in words; nil where nobody reads them.
    package var onMessage: ((String) -> Void)?
    private let connection = BLIPConnection()
    private var pushed: [UInt64: Pushed] = [:]

    package init(_ session: GatewaySession) { self.session = session }

    /// A frame came.
    package func receive(_ frame: [UInt8]) throws(BLIPError) {
        try connection.receive(frame)
        for event in connection.drainEvents() {
            onMessage?("> \(event)")
            if case .request(let number, let message) = event, message.profile == "rev" {
                let deleted = message.properties["deleted"]
                pushed[number] = Pushed(
                    id: message.properties["id"] ?? "",
                    revision: message.properties["rev"] ?? "",
                    isDeleted: deleted != nil && deleted != "0" && deleted != "false",
                    body: message.body
                )
            }
            session.receive(event)
        }
    }

    /// Has the gateway work on what came, and announce what there is.
    package func work() throws(BLIPError) {
        session.work()
        for output in session.drainOutput() {
            onMessage?("< \(output)")
            switch output {
            case .request(let message, let tag): try connection.send(message, tag: tag)
            case .reply(let message, let number):
                try connection.reply(message, to: number)
                if let taken = pushed.removeValue(forKey: number) { onTaken(taken) }
            case .failure(let error, let number):
                try connection.reply(error, to: number)
                if let refused = pushed.removeValue(forKey: number) { onRefused(refused, error) }
            }
        }
    }

    /// The next frame to send; nil if there is none.
    package func nextFrame() throws(BLIPError) -> [UInt8]? { try connection.nextFrame() }
}
