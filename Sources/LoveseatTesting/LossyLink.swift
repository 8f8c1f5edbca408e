import LoveseatCore
public import LoveseatNetwork
private import Synchronization

/// A link in memory that breaks now and then, to test an app's use of message endpoints. Seeded: the same link breaks at the
/// same places.
public final class LossyLink: Sendable {
    /// Why a connection ended.
    public struct Broken: Error {}

    private let generator: Mutex<SeededGenerator>
    private let lifetime: ClosedRange<Int>
    private let cutsPieces: Bool
    private let made = Atomic(0)

    /// `lifetime`: the messages that a connection carries before it breaks, from both sides together. `cutsPieces`: whether
    /// bytes arrive in other pieces than they were sent in, as with `ProtocolType.byteStream`.
    public init(seed: UInt64, lifetime: ClosedRange<Int>, cutsPieces: Bool = false) {
        generator = Mutex(SeededGenerator(seed: seed))
        self.lifetime = lifetime
        self.cutsPieces = cutsPieces
    }

    /// Connections made so far.
    public var connections: Int { made.load(ordering: .relaxed) }

    /// Two ends of a new connection.
    public func connect() -> (any MessageTransport, any MessageTransport) {
        made.add(1, ordering: .relaxed)
        let (count, seed) = generator.withLock { generator in
            (Int.random(in: lifetime, using: &generator), UInt64.random(in: .min ... .max, using: &generator))
        }
        let wire = Wire(left: count)
        let (there, back) = (Mailbox(limit: Wire.limit) {}, Mailbox(limit: Wire.limit) {})
        return (
            End(wire, incoming: back, outgoing: there, seed: cutsPieces ? seed : nil),
            End(wire, incoming: there, outgoing: back, seed: cutsPieces ? seed &+ 1 : nil)
        )
    }

    /// The state that both ends of a connection share.
    private final class Wire: Sendable {
        static let limit = 64 << 20
        private let left: Mutex<Int>
        init(left: Int) { self.left = Mutex(left) }

        /// Whether one more message gets through.
        func carries() -> Bool {
            left.withLock { left in
                left -= 1
                return left >= 0
            }
        }

        var isBroken: Bool { left.withLock { $0 < 0 } }
    }

    private final class End: MessageTransport {
        private let wire: Wire
        private let incoming: Mailbox
        private let outgoing: Mailbox
        private let generator: Mutex<SeededGenerator?>
        private let waiting = Mutex<[[UInt8]]>([])

        init(_ wire: Wire, incoming: Mailbox, outgoing: Mailbox, seed: UInt64?) {
            self.wire = wire
            self.incoming = incoming
            self.outgoing = outgoing
            generator = Mutex(seed.map { SeededGenerator(seed: $0) })
        }

        func send(_ bytes: [UInt8]) async throws {
            guard wire.carries() else {
                incoming.finish()
                outgoing.finish()
                throw MessagingError(error: Broken(), isRecoverable: true)
            }
            outgoing.deliver(pieces(of: bytes))
        }

        func receive() async throws -> [UInt8]? {
            while true {
                if let first = waiting.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { return first }
                guard let arrived = try await incoming.receive() else {
                    if wire.isBroken { throw MessagingError(error: Broken(), isRecoverable: true) }
                    return nil
                }
                waiting.withLock { $0 = arrived }
            }
        }

        func close() async {
            incoming.finish()
            outgoing.finish()
        }

        private func pieces(of bytes: [UInt8]) -> [[UInt8]] {
            generator.withLock { generator in
                guard var dice = generator else { return [bytes] }
                defer { generator = dice }
                var rest = bytes[...]
                var pieces: [[UInt8]] = []
                while !rest.isEmpty {
                    let count = Int.random(in: 1...max(1, rest.count), using: &dice)
                    pieces.append(Array(rest.prefix(count)))
                    rest = rest.dropFirst(count)
                }
                return pieces
            }
        }
    }
}
