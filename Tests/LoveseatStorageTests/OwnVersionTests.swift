import Foundation
import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Testing

/// No version is issued twice, and a database that may have lost one of its versions goes on under another name
/// (docs/decisions/0015-versions-in-trees.md, "One version, one content").
@Suite struct OwnVersionTests {
    private struct Stop: Error {}

    /// A source that is not this database's.
    private static let other = SourceID(high: 1, low: 1)

    // MARK: The clock

    @Test func `a clock that is set back by an hour delays no edit, and times go on increasing`() throws {
        let device = try OwnDevice()
        try device.store.beginVersions()
        let before = try #require(try device.issue(10).last)
        device.system.advance(-3_600)
        let after = try device.issue(200_000)
        #expect(zip(after, after.dropFirst()).allSatisfy { $0.time < $1.time })
        #expect(try #require(after.first).time > before.time)
        try device.crash()
        #expect(try #require(try device.issue().first).time > #require(after.last).time)
    }

    @Test func `after a crash the clock goes on at most 30 seconds ahead, and after closing where it stood`()
        throws
    {
        let device = try OwnDevice()
        try device.store.beginVersions()
        _ = try device.issue()
        try device.crash()
        let afterCrash = try #require(try device.issue().first)
        #expect(afterCrash.time > device.nanoseconds)
        #expect(afterCrash.time <= device.nanoseconds + 30_100_000_000)
        device.system.advance(100)
        let last = try #require(try device.issue().first)
        try device.reopen()
        #expect(try device.info("clock") == String(last.time))
        #expect(try #require(try device.issue().first).time == last.time + 1)
    }

    @Test func `the file is written durably once in 30 seconds, and not for each edit`() throws {
        let device = try OwnDevice()
        try device.store.beginVersions()
        var limits: Set<String?> = []
        for _ in 0..<120 {
            device.system.advance(1)
            _ = try device.issue()
            limits.insert(try device.info("clock"))
        }
        #expect((4...6).contains(limits.count))
    }

    @Test func `a peer's time up to two minutes ahead is exceeded by the next edit, also after a crash`()
        throws
    {
        let device = try OwnDevice()
        try device.store.beginVersions()
        let time = device.nanoseconds + 119_000_000_000
        let vector = VersionVector(try Version(time: time, source: Self.other))
        try device.store.write {
            try $0.versionTable.accept(vector, over: [VersionVector](), of: "a", from: "peer")
        }
        try device.crash()
        #expect(try #require(try device.issue().first).time > time)
    }

    @Test func `a time further ahead, or outside of the valid range, is refused and moves nothing`() throws {
        let device = try OwnDevice()
        try device.store.beginVersions()
        let own = try #require(try device.issue().first)
        for time in [device.nanoseconds + 121_000_000_000, 1 << 39, 1 << 63] {
            let vector = VersionVector(try Version(time: time, source: Self.other))
            #expect(throws: VersionError.self) {
                try device.store.write {
                    try $0.versionTable.accept(vector, over: [VersionVector](), of: "a", from: "peer")
                }
            }
            // A transaction that goes on after a refusal is not affected either.
            try device.store.write { transaction in
                _ = #expect(throws: VersionError.self) {
                    try transaction.versionTable.accept(
                        vector,
                        over: [VersionVector](),
                        of: "a",
                        from: "peer"
                    )
                }
            }
        }
        #expect(try #require(try device.issue().first).time == own.time + 1)
    }

    // MARK: The source

    @Test func `versions begin once, and the source outlives closing`() throws {
        let device = try OwnDevice()
        #expect(device.store.source == nil)
        #expect(try device.store.write { try $0.versionTable.edited(VersionVector()) } == nil)
        try device.store.beginVersions()
        let source = try #require(device.store.source)
        try device.store.beginVersions()
        #expect(device.store.source == source)
        try device.reopen()
        #expect(device.store.source == source)
        #expect(try device.info("versions_since") == nil)
        _ = try device.issue()
        #expect(try device.info("versions_since") == "boot-0")
    }

    @Test func `beginning versions reaches the disk before the first one is made`() throws {
        let device = try OwnDevice()
        let writes = device.store.durableWriteCount
        try device.store.beginVersions()
        #expect(device.store.durableWriteCount == writes + 1)
    }

    @Test func `a system whose starts have no names is taken for one that was started again`() throws {
        var options = DocumentStore.Options()
        options.system.bootID = { nil }
        let temporary = try TemporaryStore(options: options)
        try temporary.store.beginVersions()
        let source = temporary.store.source
        try temporary.store.close()
        let closed = try DocumentStore.open(folder: temporary.folder, options: options)
        #expect(closed.source == source)
        try closed.close()
        let queue = "INSERT INTO info (key, value) VALUES ('versions_since', 'unknown')"
        try temporary.execute(queue)
        let crashed = try DocumentStore.open(folder: temporary.folder, options: options)
        defer { try? crashed.close() }
        #expect(crashed.source != source)
    }

    @Test(arguments: ["source", "clock"])
    func `a damaged entry is replaced by a new source`(_ key: String) throws {
        let temporary = try TemporaryStore()
        try temporary.store.beginVersions()
        let source = try #require(temporary.store.source)
        try temporary.store.close()
        try temporary.execute("UPDATE info SET value = 'x' WHERE key = '\(key)'")
        let store = try DocumentStore.open(folder: temporary.folder)
        defer { try? store.close() }
        #expect(store.source != nil)
        #expect(store.source != source)
        #expect(try store.write { try $0.versionTable.edited(VersionVector()) } != nil)
    }

    /// The system is still running, so the copy's source is not taken for one that lost versions.
    @Test(arguments: [false, true])
    func `a copied folder and the copy that the API makes have sources of their own`(_ isByHand: Bool) throws
    {
        let original = try TemporaryStore()
        try original.store.beginVersions()
        func issue(_ store: DocumentStore) throws -> Version {
            try #require(try store.write { try $0.versionTable.edited(VersionVector()) }?.current)
        }
        func save(_ number: Int, _ store: DocumentStore) throws -> VersionVector {
            let collection = try #require(store.collection(.default))
            return try store.write { transaction in
                let body = JSONText(canonical: ["n": JSONValue(number)])
                _ = try transaction.save(
                    "d",
                    in: collection,
                    body: body,
                    isDeleted: false,
                    condition: .lastWriteWins
                )
                let record = try #require(try transaction.record("d", in: collection))
                return try record.tree().versions.state(of: record.revision).vector
            }
        }
        let saved = try #require(try save(1, original.store).current)
        let own = try issue(original.store)
        #expect(saved.source == own.source)
        let target = "\(original.folder)-copy"
        defer { try? FileManager.default.removeItem(atPath: target) }
        if isByHand {
            try FileManager.default.copyItem(atPath: original.folder, toPath: target)
        } else {
            try original.store.copy(to: target)
        }
        let copy = try DocumentStore.open(folder: target)
        defer { try? copy.close() }
        let copied = try issue(copy)
        #expect(copied.source != own.source)
        #expect(copied.time > own.time)
        #expect(try issue(original.store).source == own.source)
        // Versions from before keep their source.
        let edited = try save(2, copy)
        #expect(edited.current?.source == copied.source)
        #expect(Array(edited.previous) == [saved])
    }

    @Test func `a database that makes no versions has no entry for them, whatever happens to it`() throws {
        let device = try OwnDevice()
        let keys = ["source", "clock", "versions_since"]
        func expectNone() throws { for key in keys { #expect(try device.info(key) == nil) } }
        try device.store.write { _ = try $0.versionTable.edited(VersionVector()) }
        try device.crash(restarts: true)
        try expectNone()
        try device.reopen()
        try expectNone()
        let target = "\(device.scratch.path)/copy"
        try device.store.copy(to: target)
        let copy = try DocumentStore.open(folder: target)
        defer { try? copy.close() }
        #expect(copy.source == nil)
        #expect(try copy.readSettings { try $0.info("source") } == nil)
    }

    // MARK: Earlier content of the same files

    @Test func `a peer that has a version which this database lost makes it take a new source, once`() throws
    {
        let device = try OwnDevice()
        try device.store.beginVersions()
        _ = try device.issue()
        try device.reopen()
        let backup = try device.content()
        device.system.advance(10)
        let lost = try #require(try device.issue().first)
        device.system.advance(10)
        // The system was not started since, so nothing shows that the content is an earlier one.
        try device.goOn(with: backup)
        #expect(device.store.source == lost.source)
        _ = try device.issue()
        func arrive(from peer: String) throws {
            try device.store.write {
                try $0.versionTable.accept(
                    VersionVector(lost),
                    over: nil as [VersionVector]?,
                    of: "lost",
                    from: peer
                )
            }
        }
        try arrive(from: "peer")
        let source = try #require(device.store.source)
        #expect(source != lost.source)
        #expect(device.reasons == [.unknownVersion(lost, document: "lost")])
        #expect(try #require(try device.issue().first).source == source)
        try arrive(from: "peer")
        try device.crash()
        #expect(device.store.source == source)
    }

    @Test func `a version by this database that its document does not include makes it take a new source`()
        throws
    {
        let device = try OwnDevice()
        try device.store.beginVersions()
        let first = try #require(try device.issue().first)
        let vector = VersionVector(first)
        func arrive(over known: [VersionVector], from peer: String) throws {
            try device.store.write { try $0.versionTable.accept(vector, over: known, of: "a", from: peer) }
        }
        try arrive(over: [vector], from: "peer")
        #expect(device.store.source == first.source)
        try arrive(over: [VersionVector(try Version(time: 1 << 50, source: Self.other))], from: "peer")
        #expect(device.store.source != first.source)
    }

    @Test func `each peer can make a database take one new source`() throws {
        let device = try OwnDevice()
        try device.store.beginVersions()
        var sources: [SourceID?] = []
        for peer in ["one", "one", "two", "one", "two"] {
            let source = try #require(device.store.source)
            let forged = try Version(time: device.nanoseconds + 1_000_000_000, source: source)
            try device.store.write {
                try $0.versionTable.accept(
                    VersionVector(forged),
                    over: [VersionVector](),
                    of: "a",
                    from: peer
                )
            }
            sources.append(device.store.source)
        }
        #expect(sources[0] == sources[1] && sources[2] == sources[4])
        #expect(Set(sources).count == 2)
        #expect(device.reasons.count == 2)
    }

    @Test func `a transaction that fails takes neither a source nor a time with it`() throws {
        let device = try OwnDevice()
        try device.store.beginVersions()
        let own = try #require(try device.issue().first)
        #expect(throws: Stop.self) {
            try device.store.write { transaction in
                let forged = try Version(time: own.time + 1_000_000_000, source: own.source)
                try transaction.versionTable.accept(
                    VersionVector(forged),
                    over: [VersionVector](),
                    of: "a",
                    from: "peer"
                )
                throw Stop()
            }
        }
        #expect(device.store.source == own.source)
        #expect(device.reasons.isEmpty)
        #expect(try device.issue().first == Version(time: own.time + 1, source: own.source))
    }
}
