import Synchronization

/// The gates at which callers wait for their transaction, and the lanes on which those of tasks run.
struct TransactionGates: ~Copyable, Sendable {
    let write = AccessGate(places: 1)
    let read: AccessGate
    let writeLane = TransactionLane(label: "loveseat.write")
    private let freeLanes = Mutex<[TransactionLane]>([])

    init(readers: Int) { read = AccessGate(places: readers) }

    /// A lane for a read. There is one for each place behind the gate.
    func freeLane() -> TransactionLane {
        freeLanes.withLock { $0.popLast() } ?? TransactionLane(label: "loveseat.read")
    }

    func giveBack(_ lane: TransactionLane) { freeLanes.withLock { $0.append(lane) } }
}
