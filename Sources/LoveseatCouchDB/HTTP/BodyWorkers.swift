import Dispatch
import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatNetwork
import Synchronization

/// Does the work of large requests on threads of its own, one or two at a time, so that the threads that serve requests stay free: inflating
/// and parsing a body, and then its parts one by one.
///
/// The work of a request is a number of turns. The next turn is for the client that has had the least time, and of its requests for the one
/// of which the least was done: a small body never waits for all of a large one.
package final class BodyWorkers: Sendable {
    /// The workers of all listeners of the process.
    package static let shared = BodyWorkers(places: sharedPlaces)
    package static let sharedPlaces = max(1, min(2, ProcessInfo.processInfo.activeProcessorCount - 1))

    /// Bodies up to this size are read where they arrive, in bytes. Parsing as much takes a millisecond.
    static let smallBody = 256 << 10
    /// The size of the parts in which a body is worked on, in bytes, but for its last one. Smaller ones are put together.
    static let smallestPart = 4 << 10

    private struct Waiter {
        let done: Int
        let number: UInt64
        let start: CheckedContinuation<Void, Never>
    }

    private struct Client {
        /// The client's virtual time, in nanoseconds: the time that its turns took, added to the others' time when it joined them.
        var time: UInt64
        var running = 0
        var waiting: [Waiter] = []
    }

    private struct State {
        var free: Int
        var clients: [ExactText: Client] = [:]
        /// The virtual time of the client that had the last turn.
        var now: UInt64 = 0
        var number: UInt64 = 0

        /// Takes the waiter whose turn it is.
        mutating func next() -> Waiter? {
            guard free > 0 else { return nil }
            var best: (name: ExactText, place: Int, rank: (UInt64, Int, UInt64))?
            for (name, client) in clients {
                for (place, waiter) in client.waiting.enumerated() {
                    let rank = (client.time, waiter.done, waiter.number)
                    if let best, best.rank <= rank { continue }
                    best = (name, place, rank)
                }
            }
            guard let (name, place, _) = best, var client = clients.removeValue(forKey: name) else {
                return nil
            }
            let waiter = client.waiting.remove(at: place)
            client.running += 1
            now = max(now, client.time)
            clients[name] = client
            free -= 1
            return waiter
        }
    }

    private let state: Mutex<State>
    private let threads = BlockingThreads(label: "loveseat.bodies")

    package init(places: Int) { state = Mutex(State(free: places)) }

    /// Does a part of the work of a request, when it is its turn. `client`: its address. `done`: how many bytes of the request were worked on
    /// before.
    package func turn<Value>(
        of client: String,
        done: Int,
        _ work: () async throws -> Value
    ) async throws -> Value {
        try await withTaskExecutorPreference(threads) {
            let name = ExactText(client)
            await begin(name, done)
            let start = DispatchTime.now().uptimeNanoseconds
            defer { end(name, after: DispatchTime.now().uptimeNanoseconds &- start) }
            return try await work()
        }
    }

    /// How many requests of a client wait for their turn; nil if it has none at all.
    package func waiting(of client: String) -> Int? {
        state.withLock { $0.clients[ExactText(client)]?.waiting.count }
    }

    private func begin(_ name: ExactText, _ done: Int) async {
        await withCheckedContinuation { continuation in
            let waiter = state.withLock { state -> Waiter? in
                state.number &+= 1
                let waiter = Waiter(done: done, number: state.number, start: continuation)
                state.clients[name, default: Client(time: state.now)].waiting.append(waiter)
                return state.next()
            }
            waiter?.start.resume()
        }
    }

    private func end(_ name: ExactText, after time: UInt64) {
        let waiter = state.withLock { state -> Waiter? in
            state.free += 1
            if var client = state.clients[name] {
                client.running -= 1
                client.time = max(client.time, state.now) &+ time
                // A client without work is forgotten, so that it does not save up time.
                state.clients[name] = client.running == 0 && client.waiting.isEmpty ? nil : client
            }
            return state.next()
        }
        waiter?.start.resume()
    }
}
