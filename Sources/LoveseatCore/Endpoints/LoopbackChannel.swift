import LoveseatBLIPReplication
import LoveseatModel
private import Synchronization

/// One end of a connection within the process.
package final class LoopbackChannel: MessageChannel {
    private static let limit = 1 << 20

    /// The messages in flight from one end to the other, and senders that wait for room.
    private final class Direction: Sendable {
        let mailbox: Mailbox
        private let room: Room

        private final class Room: Sendable {
            let waiters = Mutex<[CheckedContinuation<Void, Never>]>([])

            func open() {
                let waiting = waiters.withLock { waiters in
                    defer { waiters = [] }
                    return waiters
                }
                for waiter in waiting { waiter.resume() }
            }
        }

        init() {
            let room = Room()
            self.room = room
            mailbox = Mailbox(limit: LoopbackChannel.limit) { room.open() }
        }

        func send(_ messages: [[UInt8]]) async {
            if mailbox.deliver(messages) { return }
            await withCheckedContinuation { continuation in
                room.waiters.withLock { $0.append(continuation) }
                if !mailbox.isFull { room.open() }
            }
        }

        func end(_ error: LoveseatError?) {
            mailbox.finish(error)
            room.open()
        }
    }

    private let incoming: Direction
    private let outgoing: Direction
    private let isClosed = Atomic(false)

    private init(incoming: Direction, outgoing: Direction) {
        self.incoming = incoming
        self.outgoing = outgoing
    }

    /// Both ends of a new connection.
    package static func pair() -> (LoopbackChannel, LoopbackChannel) {
        let (there, back) = (Direction(), Direction())
        return (
            LoopbackChannel(incoming: back, outgoing: there), LoopbackChannel(incoming: there, outgoing: back)
        )
    }

    package func send(_ messages: [[UInt8]]) async throws {
        guard !isClosed.load(ordering: .acquiring) else {
            throw LoveseatError(.webSocketAbnormalClose, "the connection is closed")
        }
        await outgoing.send(messages)
    }

    package func receive() async throws -> [[UInt8]]? { try await incoming.mailbox.receive() }

    package func close(code: Int, reason: String) async {
        if isClosed.exchange(true, ordering: .acquiringAndReleasing) { return }
        let isNormal = code == 1000 || code == 1001
        outgoing.end(
            isNormal ? nil : LoveseatError(.init(10_000 + code), "the peer closed the connection: \(reason)")
        )
        incoming.end(nil)
    }
}
