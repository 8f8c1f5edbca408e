import Foundation
import GRDB
import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Testing

/// The versions that edits get once the database has a source (docs/decisions/0015-versions-in-trees.md).
@Suite struct EditVersionTests {
    private struct Stop: Error {}

    private let device: OwnDevice
    private let collection: CollectionHandle
    private static let other = SourceID(high: 1, low: 1)
    private static let third = SourceID(high: 3, low: 3)

    init() throws {
        device = try OwnDevice()
        collection = try #require(device.store.collection(.default))
    }

    private func own() throws -> SourceID { try #require(device.store.source) }

    @discardableResult
    private func save(_ id: String, _ json: String?, _ transaction: StoreWriteTransaction) throws
        -> RevisionID
    {
        let body = try JSONText(json ?? "{}").canonical
        return try #require(
            try transaction.save(
                id,
                in: collection,
                body: body,
                isDeleted: json == nil,
                condition: .lastWriteWins
            )
        ).revision
    }

    /// Saves a document, or deletes it.
    @discardableResult
    private func save(_ id: String, _ json: String?) throws -> RevisionID {
        try device.store.write { try save(id, json, $0) }
    }

    private func tree(_ id: String) throws -> RevisionTree? {
        try device.store.readRows { try $0.record(id, in: collection)?.tree() }
    }

    /// The state of a document as a peer with versions is told of it.
    private func state(_ id: String) throws -> StateHistory {
        let tree = try #require(try tree(id))
        return tree.versions.state(of: try #require(tree.current).id)
    }

    /// Stores what another Loveseat says of a document.
    private func receive(
        _ id: String,
        _ history: [RevisionID],
        _ json: String,
        vector: VersionVector? = nil,
        asksResolver: Bool = false
    ) throws {
        try device.store.write { transaction in
            var incoming = IncomingRecord(
                documentID: id,
                history: history,
                isDeleted: false,
                body: try JSONText(json).canonical,
                sender: .loveseat,
                remote: try transaction.checkpointTables.remoteNumber("ws://peer/db")
            )
            incoming.asksResolver = asksResolver
            if let vector {
                var knowledge = TreeKnowledge()
                for (index, revision) in history.enumerated() {
                    let body = index == 0 ? incoming.body : nil
                    let parent = index + 1 < history.count ? history[index + 1] : nil
                    knowledge.nodes.append(
                        RevisionTree.Node(id: revision, parent: parent, flags: [], body: body)
                    )
                }
                knowledge.vectors = [history[0]: vector]
                incoming.knowledge = knowledge
            }
            _ = try transaction.insert(incoming, in: collection)
        }
    }

    private static func revision(_ generation: UInt32, _ digest: UInt8) -> RevisionID {
        RevisionID(generation: generation, digest: [digest])
    }

    // MARK: The file

    private func userVersion() throws -> Int? {
        var configuration = Configuration()
        configuration.readonly = true
        let queue = try DatabaseQueue(path: "\(device.folder)/db.sqlite", configuration: configuration)
        return try queue.read { try Int.fetchOne($0, sql: "PRAGMA user_version") }
    }

    private func rowsWithTree() throws -> Int? {
        var configuration = Configuration()
        configuration.readonly = true
        let queue = try DatabaseQueue(path: "\(device.folder)/db.sqlite", configuration: configuration)
        return try queue.read { db in
            try Int.fetchOne(
                db,
                sql: "SELECT count(*) FROM \"\(collection.name.fullName)\" WHERE tree IS NOT NULL"
            )
        }
    }

    @Test
    func `a database that makes no versions stores no vector, no tree of a new document, and no new format`()
        throws
    {
        try save("a", #"{"n":1}"#)
        #expect(try rowsWithTree() == 0)
        try save("a", #"{"n":2}"#)
        try save("a", nil)
        #expect(try #require(try tree("a")).vectors.isEmpty)
        #expect(try userVersion() == 7)
        // Nor does beginning versions change anything before the first edit.
        try device.store.beginVersions()
        #expect(try userVersion() == 7)
        try device.reopen()
        #expect(try userVersion() == 7)
    }

    @Test
    func `the transaction that stores the first vector writes the new format, and one that fails does not`()
        throws
    {
        try device.store.beginVersions()
        #expect(throws: Stop.self) {
            try device.store.write { transaction in
                try save("a", "{}", transaction)
                throw Stop()
            }
        }
        #expect(try userVersion() == 7)
        try save("a", "{}")
        #expect(try userVersion() == 8)
        try device.reopen()
        #expect(try state("a").vector.current?.source == own())
        #expect(try device.store.check() == [])
    }

    @Test func `a database that receives a vector makes versions from then on`() throws {
        let vector = VersionVector(try Version(time: device.nanoseconds, source: Self.other))
        try receive("a", [Self.revision(1, 1)], "{}", vector: vector)
        #expect(try userVersion() == 8)
        #expect(try state("a").vector == vector)
        let version = try #require(vector.current)
        try save("a", #"{"n":1}"#)
        #expect(try state("a").vector.current?.source == own())
        #expect(try state("a").vector.covers(version))
    }

    // MARK: Edits

    @Test func `every kind of save gets a version on top of the one before`() throws {
        try device.store.beginVersions()
        var last: UInt64 = 0
        for json in [#"{"n":1}"#, #"{"n":2}"#, nil, #"{"n":3}"#] as [String?] {
            try save("a", json)
            let state = try state("a")
            #expect(state.revisions.isEmpty)
            #expect(state.vector.versions.map(\.source) == [try own()])
            let time = try #require(state.vector.current).time
            #expect(time > last)
            last = time
        }
        #expect(try device.store.check() == [])
    }

    @Test func `the edits of one transaction have times of their own`() throws {
        try device.store.beginVersions()
        try device.store.write { transaction in
            for number in 0..<100 { try save("d\(number % 50)", #"{"n":\#(number)}"#, transaction) }
        }
        let times = try (0..<50).map { try #require(try state("d\($0)").vector.current).time }
        #expect(zip(times, times.dropFirst()).allSatisfy { $0 < $1 })
    }

    @Test func `a save says which version it made, and a row which one it has`() throws {
        try device.store.write { transaction in
            let saved = try transaction.save(
                "a",
                in: collection,
                body: .emptyObject,
                isDeleted: false,
                condition: .lastWriteWins
            )
            #expect(saved?.revision != nil && saved?.version == nil)
            #expect(try transaction.record("a", in: collection)?.version == nil)
        }
        try device.store.beginVersions()
        for (id, json) in [("b", "{}"), ("a", #"{"n":1}"#), ("b", #"{"n":1}"#), ("a", #"{"n":2}"#)] {
            try device.store.write { transaction in
                let saved = try transaction.save(
                    id,
                    in: collection,
                    body: try JSONText(json),
                    isDeleted: false,
                    condition: .lastWriteWins
                )
                let record = try #require(try transaction.record(id, in: collection))
                #expect(saved?.version?.source == device.store.source)
                #expect(saved?.version == record.version)
                #expect(try record.tree().vectors[record.revision]?.current == record.version)
            }
        }
    }

    @Test func `an unchanged document keeps its version`() throws {
        try device.store.beginVersions()
        try save("a", #"{"n":1}"#)
        let before = try state("a")
        _ = try device.store.write {
            try $0.save(
                "a",
                in: collection,
                body: try JSONText(#"{"n":1}"#),
                isDeleted: false,
                condition: .lastWriteWins,
                keepsUnchanged: true
            )
        }
        #expect(try state("a") == before)
    }

    @Test
    func `an edit of a revision without a version includes the one that stands for it, and names its line`()
        throws
    {
        let first = try save("a", #"{"n":1}"#)
        let second = try save("a", #"{"n":2}"#)
        try device.store.beginVersions()
        #expect(try state("a") == StateHistory(VersionVector(), revisions: [second, first]))
        try save("a", #"{"n":3}"#)
        let state = try state("a")
        #expect(state.vector.versions.dropFirst() == [try #require(second.encodedVersion)])
        #expect(state.vector.current?.source == (try own()))
        #expect(state.revisions == [second, first])
    }

    @Test func `an edit of a peer's version includes it, and is later, also if the peer's clock is ahead`()
        throws
    {
        try device.store.beginVersions()
        let ahead = try Version(time: device.nanoseconds + 100_000_000_000, source: Self.other)
        try receive("a", [Self.revision(1, 1)], "{}", vector: VersionVector(ahead))
        try save("a", #"{"n":1}"#)
        let vector = try state("a").vector
        #expect(Array(vector.previous) == [ahead])
        #expect(try #require(vector.current).time > ahead.time)
        try device.crash()
        try save("b", "{}")
        #expect(try #require(try state("b").vector.current).time > ahead.time)
    }

    @Test func `a tree with a version too far ahead is refused, and nothing of it is stored`() throws {
        try device.store.beginVersions()
        let ahead = try Version(time: device.nanoseconds + 130_000_000_000, source: Self.other)
        #expect(throws: VersionError(.timeTooFarAhead)) {
            try receive("a", [Self.revision(1, 1)], "{}", vector: VersionVector(ahead))
        }
        #expect(try tree("a") == nil)
    }

    @Test func `a document that is made anew after a purge has a later version than the purged one`() throws {
        try device.store.beginVersions()
        try device.store.write { _ = try $0.checkpointTables.remoteNumber("ws://peer/db") }
        for json in [#"{"n":1}"#, #"{"n":2}"#] {
            try save("a", #"{"n":1}"#)
            let before = try #require(try state("a").vector.current)
            #expect(try device.store.write { try $0.purge("a", in: collection) })
            try save("a", json)
            #expect(try #require(try state("a").vector.current).time > before.time)
        }
    }

    @Test func `edits of peers of CouchDB's wire get versions`() throws {
        try device.store.beginVersions()
        func edit(over parent: RevisionID?, _ json: String) throws -> RevisionID {
            try device.store.write { transaction in
                try transaction.insertEdit(
                    over: parent,
                    of: "a",
                    replacing: try transaction.record("a", in: collection),
                    in: collection,
                    body: try JSONText(json).canonical,
                    isDeleted: false
                )
            }
        }
        let first = try edit(over: nil, #"{"n":1}"#)
        let version = try #require(try state("a").vector.current)
        _ = try edit(over: first, #"{"n":2}"#)
        let edited = try #require(try state("a").vector.current)
        #expect(version.source == edited.source && version.time < edited.time)
    }

    // MARK: Conflicts

    /// Two revisions in conflict, each with a version of its own; the pulled one waits for a resolver if it is asked.
    private func makeConflict(asksResolver: Bool) throws -> (own: Version, other: Version) {
        try device.store.beginVersions()
        try save("a", #"{"n":1}"#)
        let own = try #require(try state("a").vector.current)
        let other = try Version(time: device.nanoseconds, source: Self.other)
        try receive(
            "a",
            [Self.revision(1, 0)],
            #"{"n":2}"#,
            vector: VersionVector(other),
            asksResolver: asksResolver
        )
        return (own, other)
    }

    @Test func `an edit that decides against another candidate includes its version`() throws {
        let (own, other) = try makeConflict(asksResolver: false)
        try save("a", #"{"n":3}"#)
        let vector = try state("a").vector
        #expect(vector.covers(own) && vector.covers(other))
        #expect(vector.current != own && vector.current != other)
    }

    @Test(arguments: [
        ConflictVerdict.local, .remote,
        .merged(
            body: JSONText(canonical: .object(["n": .number(.integer(4))])),
            isDeleted: false,
            parent: RevisionID(generation: 1, digest: [0])
        ),
    ])
    func `a resolver's verdict makes a version that includes both sides`(_ verdict: ConflictVerdict) throws {
        let (own, other) = try makeConflict(asksResolver: true)
        let tree = try #require(try tree("a"))
        let pending = try #require(tree.pending.first).id
        let made = try device.store.write {
            try $0.resolve(
                "a",
                in: collection,
                local: try #require(tree.current).id,
                remote: pending,
                verdict,
                from: .loveseat
            )
        }
        #expect(made != nil)
        let vector = try state("a").vector
        #expect(vector.covers(own) && vector.covers(other))
        #expect(vector.current?.source == (try self.own()))
        #expect(Set(vector.mergeVersions) == [own, other])
        #expect(try device.store.check() == [])
    }

    @Test func `a person's choice between revisions without versions makes a version that includes both`()
        throws
    {
        let mine = try save("a", #"{"n":1}"#)
        let theirs = Self.revision(1, 0)
        try receive("a", [theirs], #"{"n":2}"#)
        try device.store.beginVersions()
        _ = try device.store.write { transaction in
            let record = try #require(try transaction.record("a", in: collection))
            return try transaction.resolve(record, in: collection, keeping: mine, edit: nil)
        }
        let vector = try state("a").vector
        #expect(vector.current?.source == (try own()))
        #expect(vector.versions.count == 2)
    }

    // MARK: Exports

    /// The other device's clock may be behind.
    @Test(arguments: [false, true], [0, -1_000_000])
    func `an archived document brings its versions to another database`(_ isThere: Bool, _ seconds: Int)
        throws
    {
        try device.store.beginVersions()
        let first = try save("a", #"{"n":1}"#)
        try save("a", #"{"n":2}"#)
        let record = try #require(try device.store.readRows { try $0.record("a", in: collection) })
        let archived = try ArchivedRevisions(record)
        let target = try OwnDevice()
        target.system.advance(seconds)
        _ = target.system.newSource()
        try target.store.beginVersions()
        if isThere {
            let saved = try target.store.write {
                try $0.save(
                    "a",
                    in: collection,
                    body: try JSONText(#"{"n":1}"#),
                    isDeleted: false,
                    condition: .lastWriteWins
                )
            }
            #expect(saved?.revision == first)
        }
        let isChanged = try target.store.write {
            try $0.restore(archived, of: "a", body: record.body, in: collection)
        }
        #expect(isChanged)
        let tree = try #require(try target.store.readRows { try $0.record("a", in: collection)?.tree() })
        let vector = tree.versions.state(of: record.revision).vector
        let version = try #require(try state("a").vector.current)
        #expect(vector.current == version)
        #expect(vector.versions.count == (isThere ? 2 : 1))
    }

    @Test func `an export that has versions which the database lost makes it take a new source`() throws {
        try device.store.beginVersions()
        try save("a", #"{"n":1}"#)
        try device.reopen()
        let backup = try device.content()
        device.system.advance(10)
        try save("a", #"{"n":2}"#)
        let record = try #require(try device.store.readRows { try $0.record("a", in: collection) })
        let lost = try #require(try state("a").vector.current)
        try device.goOn(with: backup)
        #expect(device.store.source == lost.source)
        let archived = try ArchivedRevisions(record)
        let isChanged = try device.store.write {
            try $0.restore(archived, of: "a", body: record.body, in: collection)
        }
        #expect(isChanged)
        #expect(device.store.source != lost.source)
        try save("a", #"{"n":3}"#)
        #expect(try state("a").vector.previous.contains(lost))
    }
}
