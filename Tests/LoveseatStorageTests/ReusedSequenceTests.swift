import Foundation
import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Testing

/// No sequence that a peer may know is used again, in whatever order a database is written, closed, crashes and loses power, with or without
/// writes between (docs/decisions/0006-lost-commits.md, "Sequences").
@Suite struct ReusedSequenceTests {
    enum Event {
        case write, fail, reachDisk, crash, losePower, close

        /// As often as histories need them in which something is written between two accidents, and not yet closed.
        static let drawn: [Self] = [
            .write, .write, .write, .fail, .reachDisk, .crash, .crash, .losePower, .losePower, .close,
        ]
    }

    /// What a random history is made on.
    private protocol Disk {
        var store: DocumentStore { get }
        /// Lets something happen; ``Event/write`` is performed before and after the writing itself.
        mutating func perform(_ event: Event, _ random: inout SeededGenerator) throws
    }

    private struct Stop: Error {}

    /// Saves some documents, and returns their sequences.
    private static func save(_ count: Int, in store: DocumentStore) throws -> [UInt64] {
        let collection = try #require(store.collection(.default))
        return try store.write { transaction in
            try (0..<count).map { number in
                let saved = try transaction.save(
                    "d\(number)",
                    in: collection,
                    body: .emptyObject,
                    isDeleted: false,
                    condition: .lastWriteWins
                )
                return try #require(saved).sequence
            }
        }
    }

    /// A transaction that leaves nothing but the reserve.
    private static func fail(in store: DocumentStore) {
        #expect(throws: Stop.self) { try store.write { _ in throw Stop() } }
    }

    private static func run(_ disk: inout some Disk, seed: UInt64, events: Int) throws {
        var random = SeededGenerator(seed: seed)
        var (highest, history) = (UInt64(0), [] as [Event])
        for _ in 0..<events {
            let event = random.pick(Event.drawn)
            history.append(event)
            guard event == .write else {
                try disk.perform(event, &random)
                continue
            }
            try disk.perform(.write, &random)
            let saved = try save(random.int(1...3), in: disk.store)
            let first = try #require(saved.first)
            #expect(first > highest, "seed \(seed): \(history)")
            if first <= highest { return }
            highest = try #require(saved.last)
            try disk.perform(.write, &random)
        }
        #expect(try disk.store.check() == [], "seed \(seed): \(history)")
    }

    // MARK: Files

    /// A folder, and what a power loss may leave of it: the last state that reached the disk, and all later ones.
    private struct Folder: Disk {
        let scratch: Scratch
        private(set) var store: DocumentStore
        private var (path, copies) = ("", 0)
        private var states: [String] = []
        private var isWritten = false

        init() throws {
            scratch = try Scratch()
            path = "\(scratch.path)/0"
            store = try DocumentStore.open(folder: path)
            try copyState(reachesDisk: true)
        }

        private mutating func copy(_ folder: String) throws -> String {
            copies += 1
            let target = "\(scratch.path)/\(copies)"
            try FileManager.default.copyItem(atPath: folder, toPath: target)
            return target
        }

        private mutating func copyState(reachesDisk: Bool) throws {
            if reachesDisk { states = [] }
            states.append(try copy(path))
        }

        private mutating func open(_ folder: String) throws {
            (path, isWritten) = (folder, false)
            store = try DocumentStore.open(folder: folder)
        }

        mutating func perform(_ event: Event, _ random: inout SeededGenerator) throws {
            switch event {
            case .write, .fail:
                // The reserve reaches the disk, with everything before it, and no more than that.
                if !isWritten || event == .fail { ReusedSequenceTests.fail(in: store) }
                try copyState(reachesDisk: !isWritten)
                isWritten = true
            case .reachDisk:
                _ = try store.write(durably: true) { _ in }
                isWritten = true
                try copyState(reachesDisk: true)
            case .crash:
                let left = try copy(path)
                try store.close()
                try open(left)
            case .losePower:
                try store.close()
                let left = random.pick(states)
                try open(try copy(left))
                states = [left]
            case .close:
                try store.close()
                try copyState(reachesDisk: true)
                try open(path)
            }
        }
    }

    @Test(arguments: 1...3 as ClosedRange<UInt64>)
    func `no sequence is used again after any order of closings, crashes and power losses`(_ seed: UInt64)
        throws
    {
        var disk = try Folder()
        defer { try? disk.store.close() }
        try Self.run(&disk, seed: seed, events: 60)
    }

    // MARK: Snapshots

    /// A database in memory, and the snapshot to which a power loss puts it back, as in simulations.
    private struct Memory: Disk {
        let scratch: Scratch
        private(set) var store: DocumentStore
        private var durable: StoreSnapshot

        init() throws {
            scratch = try Scratch()
            store = try DocumentStore.inMemory(blobFolder: "\(scratch.path)/blobs")
            try store.write { _ = try $0.createCollection(.default) }
            durable = try store.snapshot()
        }

        private mutating func open(_ snapshot: StoreSnapshot, keeping reserves: StoreReserves? = nil) throws {
            let opened = try DocumentStore.inMemory(blobFolder: "\(scratch.path)/blobs")
            try opened.restore(snapshot, keeping: reserves)
            try store.close()
            store = opened
        }

        mutating func perform(_ event: Event, _ random: inout SeededGenerator) throws {
            switch event {
            case .write: break
            case .fail: ReusedSequenceTests.fail(in: store)
            case .reachDisk: durable = try store.snapshot()
            case .crash: try open(try store.snapshot())
            case .losePower:
                if random.chance(0.5) {
                    try open(durable, keeping: try store.reserves())
                } else {
                    try store.restore(durable)
                }
            case .close:
                durable = try store.snapshot(isClosed: true)
                try open(durable)
            }
        }
    }

    /// Simulator, wire of CouchDB, seed 2101070: two power losses without a write between them took the reserve back.
    @Test(arguments: 1...30 as ClosedRange<UInt64>)
    func `no sequence is used again by a database that is put back to snapshots of itself`(_ seed: UInt64)
        throws
    {
        var disk = try Memory()
        defer { try? disk.store.close() }
        try Self.run(&disk, seed: seed, events: 60)
    }
}
