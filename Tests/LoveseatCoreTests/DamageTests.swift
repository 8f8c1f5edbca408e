import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Testing

/// What the disk did to stored documents, and how their files are kept.
struct DamageTests {
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    private func file(_ database: String) -> String { "\(scratch.path)/\(database).loveseat/db.sqlite" }

    /// Changes bytes in the file of a database that is closed.
    private func change(_ old: String, to new: String, in database: String) throws {
        var data = try Data(contentsOf: URL(filePath: file(database)))
        let range = try #require(data.range(of: Data(old.utf8)))
        data.replaceSubrange(range, with: Data(new.utf8))
        try data.write(to: URL(filePath: file(database)))
    }

    private func replicator(_ near: Database, _ far: Database, _ type: ReplicatorType) throws -> Replicator {
        var configuration = ReplicatorConfiguration(
            collections: [try near.defaultCollection()],
            target: DatabaseEndpoint(database: far)
        )
        configuration.replicatorType = type
        return Replicator(configuration)
    }

    /// Replicates, and returns the errors of documents.
    @discardableResult
    private func run(_ replicator: Replicator) async -> [String: LoveseatError] {
        let events = replicator.documentReplications
        replicator.start()
        var errors: [String: LoveseatError] = [:]
        for await event in events {
            for document in event.documents { errors[document.id] = document.error }
        }
        #expect(await replicator.waitUntilStopped().error == nil)
        return errors
    }

    @discardableResult
    private func push(_ near: Database, _ far: Database) async throws -> [String: LoveseatError] {
        await run(try replicator(near, far, .push))
    }

    /// The peer agreed to each of them, and takes no more proposals than it has agreed to and not received.
    @Test(.timeLimit(.minutes(1)))
    func `hundreds of damaged documents do not keep a push from ending`() async throws {
        let near = try scratch.database("near")
        let collection = try near.defaultCollection()
        try await near.write { transaction in
            for number in 0..<600 {
                try transaction.save(Document(id: "bad\(number)", ["city": "Paris"]), in: collection)
            }
            for number in 0..<300 {
                try transaction.save(Document(id: "good\(number)", ["city": "Oslo"]), in: collection)
            }
        }
        try await near.close()
        let bytes = Array(try Data(contentsOf: URL(filePath: file("near"))))
        let changed = bytes.replacing(Array("Paris".utf8), with: Array("Pariz".utf8))
        try Data(changed).write(to: URL(filePath: file("near")))
        let far = try scratch.database("far")
        let errors = try await push(try scratch.database("near"), far)
        #expect(errors.count == 600)
        #expect(Set(errors.values.map(\.code)) == [.corruptRevisionData])
        #expect(try far.defaultCollection().count == 300)
    }

    @Test func `a flipped byte in a body is found, and the document is not sent on`() async throws {
        let near = try scratch.database("near")
        let collection = try near.defaultCollection()
        try collection.save(Document(id: "new", ["city": "Paris"]))
        var edited = Document(id: "edited", ["n": 1])
        try collection.save(&edited)
        edited["city"] = "Geneva"
        try collection.save(&edited)
        try collection.save(Document(id: "good", ["city": "Oslo"]))
        // Marks of what a peer has change the row, and must not hide anything later.
        let before = try scratch.database("before")
        try await push(near, before)
        try near.performMaintenance(type: .integrityCheck)
        try await near.close()
        try change("Paris", to: "Pariz", in: "near")
        try change("Geneva", to: "Genova", in: "near")
        let damaged = try scratch.database("near")
        let error = #expect(throws: LoveseatError.self) {
            try damaged.performMaintenance(type: .integrityCheck)
        }
        #expect(error?.code == .corruptData)
        #expect(error?.message.hasPrefix("2 problems") == true)
        let far = try scratch.database("far")
        // They are failed and pending until they are repaired, each time.
        for _ in 0..<2 {
            let errors = try await push(damaged, far)
            #expect(
                errors.mapValues(\.code) == ["new": .corruptRevisionData, "edited": .corruptRevisionData]
            )
            #expect(errors["new"]?.message.contains("damaged") == true)
            let pending = try replicator(damaged, far, .push)
                .pendingDocumentIds(collection: damaged.defaultCollection())
            #expect(pending == ["edited", "new"])
        }
        #expect(try Set(far.defaultCollection().contents().keys) == ["good"])
        // And a peer that asks for them is told why it does not get them, each time.
        let asking = try scratch.database("asking")
        for _ in 0..<2 {
            let errors = await run(try replicator(asking, damaged, .pull))
            #expect(errors.mapValues(\.code) == ["new": .init(10500), "edited": .init(10500)])
            #expect(errors["new"]?.message.contains("damaged") == true)
        }
        #expect(try Set(asking.defaultCollection().contents().keys) == ["good"])
        // Repaired, it goes.
        try damaged.defaultCollection().save(Document(id: "new", ["city": "Paris"]))
        #expect(try await push(damaged, far).keys.sorted() == ["edited"])
        #expect(await run(try replicator(asking, damaged, .pull)).keys.sorted() == ["edited"])
        #expect(try asking.defaultCollection().document(id: "new")?["city"] == "Paris")
    }

    @Test(arguments: [true, false])
    func `a body that is not JSON any more is an error of each read, and is neither overwritten nor sent`(
        _ isOurs: Bool
    ) async throws {
        let near = try scratch.database("near")
        let collection = try near.defaultCollection()
        try collection.save(Document(id: "good", ["city": "Oslo"]))
        if isOurs {
            try collection.save(Document(id: "d", ["city": "Paris"]))
        } else {
            // The ID does not say of what it was made.
            let foreign = try #require(RevisionID("1-" + String(repeating: "ab", count: 20)))
            let incoming = IncomingRecord(
                documentID: "d",
                history: [foreign],
                isDeleted: false,
                body: JSONText(canonical: ["city": "Paris"]),
                sender: .loveseat
            )
            _ = try near.store.write { try $0.insert(incoming, in: collection.handle) }
        }
        try await near.close()
        try change(#""Paris"}"#, to: #""Paris}}"#, in: "near")
        let damaged = try scratch.database("near")
        let there = try damaged.defaultCollection()
        let reads: [() throws -> Void] = [
            { _ = try there.document(id: "d")?.json }, { _ = try there.documents(ids: ["good", "d"]) },
            { _ = try there.documents(.all) },
            { try damaged.read { _ = try $0.document(id: "d", in: there)?.json } },
            { _ = try there.update(id: "d") { $0["n"] = 1 } },
        ]
        for read in reads {
            let error = #expect(throws: LoveseatError.self) { try read() }
            #expect(error?.code == .corruptData)
            #expect(error?.message.contains("document \"d\"") == true)
        }
        var exporter = Exporter(of: damaged, blobs: false, revisions: false) { _ in }
        try exporter.export(there)
        #expect(exporter.damaged.map(\.document) == ["_default._default/d"])
        let record = try damaged.store.readRows { try $0.record("d", in: there.handle) }
        #expect(record?.body.description == #"{"city":"Paris}}"#)
        let far = try scratch.database("far")
        #expect(try await push(damaged, far).keys.sorted() == ["d"])
        #expect(try Set(far.defaultCollection().contents().keys) == ["good"])
    }

    @Test func `bodies that are kept beside the current one are checked too, and nothing is built on damage`()
        async throws
    {
        var config = scratch.config
        config.enableDeltaSync = true
        let near = try Database(name: "near", config: config)
        let far = try Database(name: "far", config: config)
        let filling = JSONValue.string(String(repeating: "x", count: 400))
        // An earlier revision, and one that waits for a resolver.
        var document = Document(id: "d", ["city": "Lisbon", "filling": filling])
        try near.defaultCollection().save(&document)
        try await push(near, far)
        document["n"] = 2
        document["city"] = "Porto"
        try near.defaultCollection().save(&document)
        try near.defaultCollection().save(Document(id: "c", ["city": "Bergen"]))
        try far.defaultCollection().save(Document(id: "c", ["city": "Odense"]))
        let pulling = try replicator(near, far, .pull)
        var configuration = pulling.config
        struct Undecided: Error {}
        configuration.collections[0].conflictResolver = ConflictResolver.custom { _ in throw Undecided() }
        #expect(await run(Replicator(configuration)).keys.sorted() == ["c"])
        try near.performMaintenance(type: .integrityCheck)
        try await near.close()
        try change("Lisbon", to: "Lisbom", in: "near")
        try change("Odense", to: "Odensa", in: "near")
        let damaged = try Database(name: "near", config: config)
        let error = #expect(throws: LoveseatError.self) {
            try damaged.performMaintenance(type: .integrityCheck)
        }
        #expect(error?.code == .corruptData)
        #expect(error?.message.hasPrefix("2 problems") == true, "\(error?.message ?? "")")
        // The difference to a damaged body would make another document at the peer.
        try await push(damaged, far)
        #expect(try far.defaultCollection().document(id: "d")?["city"] == "Porto")
        // Also after the damaged one stood by for another edit.
        document = try #require(try damaged.defaultCollection().document(id: "d"))
        document["n"] = 3
        try damaged.defaultCollection().save(document)
        expectError(.corruptData) { try damaged.performMaintenance(type: .integrityCheck) }
    }

    @Test func `a pulled body is checked where its revision is a digest, and left alone where it is not`()
        async throws
    {
        let (near, far) = (try scratch.database("near"), try scratch.database("far"))
        try far.defaultCollection().save(Document(id: "ours", ["city": "Paris"]))
        let there = try far.defaultCollection()
        let foreign = try #require(RevisionID("1-" + String(repeating: "ab", count: 20)))
        _ = try far.store.write {
            try $0.insert(
                IncomingRecord(
                    documentID: "theirs",
                    history: [foreign],
                    isDeleted: false,
                    body: JSONText(canonical: ["city": "Geneva"]),
                    sender: .loveseat
                ),
                in: there.handle
            )
        }
        try far.performMaintenance(type: .integrityCheck)
        try await push(far, near)
        try near.performMaintenance(type: .integrityCheck)
        try await near.close()
        try change("Paris", to: "Pariz", in: "near")
        let damaged = try scratch.database("near")
        expectError(.corruptData) { try damaged.performMaintenance(type: .integrityCheck) }
    }

    /// Ways in which a revision comes that is here already.
    enum Way: CaseIterable { case couchDB, batch, loveseat, tree, archive }

    @Test(arguments: Way.allCases)
    func `damaged content is replaced by what the revision was made of, and by nothing else`(_ way: Way)
        throws
    {
        let near = try scratch.database("near")
        var document = Document(id: "d", ["city": "Paris"])
        try near.defaultCollection().save(&document)
        document["city"] = "Geneva"
        try near.defaultCollection().save(&document)
        let record = { (database: Database) throws -> DocumentRecord in
            let collection = try database.defaultCollection()
            return try #require(
                try database.store.readRows { try $0.record("d", in: collection.handle) }
            )
        }
        let intact = try record(near)
        let line = try intact.tree().line(intact.revision)
        let archived = try ArchivedRevisions(intact)
        try near.close()
        try change("Geneva", to: "Genova", in: "near")
        let damaged = try scratch.database("near")
        let handle = try damaged.defaultCollection().handle
        func bring(_ body: JSONText) throws {
            try damaged.store.write { transaction in
                switch way {
                case .couchDB:
                    try transaction.insertBranch(line, of: "d", in: handle, body: body, isDeleted: false)
                case .batch:
                    let others = (1...3 as ClosedRange<UInt8>).map { number in
                        ReceivedBranch(
                            history: [RevisionID(generation: 2, digest: [number]), line[1]],
                            body: .emptyObject,
                            isDeleted: false
                        )
                    }
                    let branch = ReceivedBranch(
                        history: line,
                        body: body,
                        isDeleted: false
                    )
                    let results = try transaction.insertBranches(
                        others + [branch],
                        of: "d",
                        in: handle
                    )
                    _ = try results[3].get()
                case .archive: _ = try transaction.restore(archived, of: "d", body: body, in: handle)
                case .loveseat, .tree:
                    let id = try #require(RevisionID("2-aa"))
                    var incoming = IncomingRecord(
                        documentID: "d",
                        history: way == .tree ? [id, line[1]] : line,
                        isDeleted: false,
                        body: way == .tree ? .emptyObject : body,
                        sender: .loveseat
                    )
                    if way == .tree {
                        var knowledge = try intact.tree().knowledge
                        knowledge.nodes = knowledge.nodes.map {
                            RevisionTree.Node(
                                id: $0.id,
                                parent: $0.parent,
                                flags: $0.flags,
                                body: $0.id == line[0] ? body : nil
                            )
                        }
                        knowledge.nodes.append(
                            RevisionTree.Node(id: id, parent: line[1], flags: [], body: .emptyObject)
                        )
                        incoming.knowledge = knowledge
                    }
                    _ = try transaction.insert(incoming, in: handle)
                }
            }
        }
        #expect(throws: (any Error).self) { try bring(JSONText(canonical: ["city": "Oslo"])) }
        #expect(try record(damaged).body.description.contains("Genova"))
        try bring(intact.body)
        #expect(try record(damaged).tree().node(line[0])?.body == intact.body)
        #expect(try record(damaged).sequence > intact.sequence)
        try damaged.performMaintenance(type: .integrityCheck)
        // And what is intact is not replaced.
        #expect(throws: (any Error).self) { try bring(JSONText(canonical: ["city": "Oslo"])) }
        try damaged.performMaintenance(type: .integrityCheck)
    }

    @Test func `a database that is closed is in one file, also while another reads it`() throws {
        let database = try scratch.database("db")
        var config = scratch.config
        config.readOnly = true
        let reader = try Database(name: "db", config: config)
        for number in 0..<100 { try database.defaultCollection().save(Document(id: "\(number)")) }
        let log = file("db") + "-wal"
        func size() -> UInt64? {
            (try? FileManager.default.attributesOfItem(atPath: log))?[.size] as? UInt64
        }
        #expect(try #require(size()) > 0)
        try database.close()
        #expect((size() ?? 0) == 0)
        #expect(try reader.defaultCollection().count == 100)
        try reader.close()
    }

    @Test func `only the owner can read a database's folder and files`() throws {
        let database = try scratch.database("db")
        _ = try database.saveBlob([1, 2, 3])
        try database.defaultCollection().save(Document(id: "d"))
        let path = try #require(database.path)
        try Database.copy(fromPath: path, toDatabase: "copy", withConfig: scratch.config)
        let files = FileManager.default
        for folder in [path, "\(scratch.path)/copy.loveseat"] {
            for name in [""] + (try files.subpathsOfDirectory(atPath: folder)) {
                let attributes = try files.attributesOfItem(atPath: "\(folder)/\(name)")
                let mode = try #require(attributes[.posixPermissions] as? NSNumber).intValue
                let isFolder = attributes[.type] as? FileAttributeType == .typeDirectory
                #expect(mode == (isFolder ? 0o700 : 0o600), "\(name)")
            }
        }
        try database.close()
    }
}
