import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Synchronization
import Testing

/// No version is issued twice, nor by an author that may have lost one, in whatever order a database is written, closed, crashes and loses power
/// (docs/decisions/0015-versions-in-trees.md, "One version, one content").
@Suite struct OwnVersionHistoryTests {
    private struct Stop: Error {}

    /// A source that is not this database's.
    private static let other = SourceID(high: 1, low: 1)

    private enum Event {
        case write, fail, reachDisk, crash, losePower, close, advance, setBack

        static let drawn: [Self] = [
            .write, .write, .write, .write, .fail, .reachDisk, .crash, .crash, .losePower, .losePower, .close,
            .advance, .setBack,
        ]
    }

    /// A history on a disk, with what peers have seen of it.
    private struct History {
        let device: OwnDevice
        let isFullSync: Bool
        /// The last state that reached the disk, and all later ones, with the number of versions that had been issued.
        var states: [(content: OwnDevice.Content, issued: Int)] = []
        var issued: [Version] = []
        /// The sources of versions that were lost.
        var lost: Set<SourceID> = []
        var events: [Event] = []

        init(fullSync: Bool) throws {
            isFullSync = fullSync
            device = try OwnDevice(fullSync: fullSync)
            try device.store.beginVersions()
            try noteState(reachesDisk: true)
        }

        mutating func noteState(reachesDisk: Bool) throws {
            if reachesDisk || isFullSync { states = [] }
            states.append((try device.content(), issued.count))
        }

        /// A transaction that leaves nothing but the reserves, which reach the disk with everything before them.
        mutating func fail() throws {
            let before = try device.info("clock")
            #expect(throws: Stop.self) { try device.store.write { _ in throw Stop() } }
            try noteState(reachesDisk: try device.info("clock") != before)
        }

        mutating func write(_ random: inout SeededGenerator) throws {
            try fail()
            if random.chance(0.2) {
                // A peer whose clock is ahead.
                let time = device.nanoseconds + UInt64(random.int(0...119)) * 1_000_000_000
                let version = try Version(time: time, source: OwnVersionHistoryTests.other)
                try device.store.write {
                    try $0.versionTable.accept(
                        VersionVector(version),
                        over: nil as [VersionVector]?,
                        of: "a",
                        from: "peer"
                    )
                }
                try noteState(reachesDisk: false)
            }
            let versions = try device.issue(random.int(1...3))
            for version in versions {
                let last = issued.last { $0.source == version.source }
                #expect(last.map { $0.time < version.time } ?? true, "\(version) after \(issued): \(events)")
                #expect(!lost.contains(version.source), "its author has lost versions: \(events)")
                issued.append(version)
            }
            try noteState(reachesDisk: false)
        }

        mutating func perform(_ event: Event, _ random: inout SeededGenerator) throws {
            events.append(event)
            let source = device.store.source
            switch event {
            case .write: try write(&random)
            case .fail: try fail()
            case .reachDisk:
                try fail()
                _ = try device.store.write(durably: true) { _ = try $0.versionTable.edited(VersionVector()) }
                try noteState(reachesDisk: true)
            case .crash:
                try device.crash()
                #expect(device.store.source == source, "\(events)")
            case .losePower:
                let state = random.pick(states)
                lost.formUnion(issued[state.issued...].map(\.source))
                try device.goOn(with: state.content, restarts: true)
                states = [state]
                // The lost versions are with peers, and a new source was not issued by the old one.
                if isFullSync { #expect(device.store.source == source, "\(events)") }
            case .close:
                try device.reopen()
                try noteState(reachesDisk: true)
                #expect(device.store.source == source, "\(events)")
            case .advance: device.system.advance(random.int(0...60))
            case .setBack: device.system.advance(-random.int(0...3_600))
            }
        }
    }

    @Test(arguments: 1...6 as ClosedRange<UInt64>)
    func `no version is issued twice, nor by an author that lost one, in any order of accidents`(
        _ seed: UInt64
    ) throws {
        var random = SeededGenerator(seed: seed)
        var history = try History(fullSync: false)
        for _ in 0..<80 { try history.perform(random.pick(Event.drawn), &random) }
        #expect(try history.device.store.check() == [])
    }

    @Test(arguments: 1...3 as ClosedRange<UInt64>)
    func `with fullSync, the source survives every accident, and no version is issued twice`(_ seed: UInt64)
        throws
    {
        var random = SeededGenerator(seed: seed)
        var history = try History(fullSync: true)
        for _ in 0..<60 { try history.perform(random.pick(Event.drawn), &random) }
        #expect(history.device.reasons.isEmpty)
    }

    /// As simulated peers do, which are put back to snapshots.
    @Test(arguments: 1...10 as ClosedRange<UInt64>)
    func `no version is issued twice by a database that is put back to snapshots of itself`(_ seed: UInt64)
        throws
    {
        var random = SeededGenerator(seed: seed)
        let (system, scratch) = (OwnDevice.System(), try Scratch())
        var options = DocumentStore.Options()
        options.system.nanoseconds = { system.nanoseconds.withLock { $0 } }
        options.system.bootID = { "boot-\(system.starts.withLock { $0 })" }
        options.system.newSource = { system.newSource() }
        func open(_ snapshot: StoreSnapshot?, keeping reserves: StoreReserves? = nil) throws -> DocumentStore
        {
            let store = try DocumentStore.inMemory(blobFolder: "\(scratch.path)/blobs", options: options)
            if let snapshot { try store.restore(snapshot, keeping: reserves) }
            return store
        }
        var store = try open(nil)
        try store.beginVersions()
        var durable = try store.snapshot()
        var last: [SourceID: UInt64] = [:]
        var (sinceDurable, lost): (Set<SourceID>, Set<SourceID>) = ([], [])
        for _ in 0..<60 {
            let source = store.source
            switch random.int(0...9) {
            case 0: system.advance(random.int(-600...60))
            case 1:
                durable = try store.snapshot()
                sinceDurable = []
            case 2:
                // The process dies.
                let opened = try open(try store.snapshot())
                try store.close()
                store = opened
                #expect(store.source == source)
            case 3:
                lost.formUnion(sinceDurable)
                system.starts.withLock { $0 += 1 }
                let opened = try open(durable, keeping: try store.reserves())
                try store.close()
                store = opened
            case 4:
                durable = try store.snapshot(isClosed: true)
                sinceDurable = []
                let opened = try open(durable)
                try store.close()
                store = opened
                #expect(store.source == source)
            default:
                let version = try #require(
                    try store.write { try $0.versionTable.edited(VersionVector())?.current }
                )
                #expect(last[version.source] ?? 0 < version.time)
                #expect(!lost.contains(version.source))
                last[version.source] = version.time
                sinceDurable.insert(version.source)
            }
        }
        try store.close()
    }
}
