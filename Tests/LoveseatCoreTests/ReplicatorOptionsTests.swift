import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Synchronization
import Testing

/// What a configuration can say about collections, between two databases of one process.
@Suite struct ReplicatorOptionsTests: PairSuite {
    let pair: DatabasePair

    init() throws { pair = try DatabasePair() }

    @discardableResult
    private func run(_ replicator: Replicator, reset: Bool = false) async -> Replicator.Status {
        replicator.start(reset: reset)
        return await replicator.waitUntilStopped()
    }

    /// What went wrong with documents that were pulled. (Those in conflict cannot be pushed either.)
    private func errors(_ replicator: Replicator) async -> [String: Int] {
        let events = replicator.documentReplications
        await run(replicator)
        var errors: [String: Int] = [:]
        for await event in events where !event.isPush {
            for document in event.documents { errors[document.id] = document.error?.code.value }
        }
        return errors
    }

    // MARK: Filters and lists

    @Test func `a push filter keeps documents here, deletions too, and may use the database`() async throws {
        for number in 0..<300 { try here.save(Document(id: "d\(number)", ["n": JSONValue(number)])) }
        try here.delete(try #require(try here.document(id: "d2")))
        try here.delete(try #require(try here.document(id: "d3")))
        let deleted = Mutex<[String]>([])
        let here = here
        let pushing = replicator(.push) { entry in
            entry.pushFilter = { document, flags in
                if flags.contains(.deleted) { deleted.withLock { $0.append(document.id) } }
                let stored = try? here.document(id: document.id)
                return (stored?["n"]?.int ?? 0).isMultiple(of: 2) && document.id != "d3"
            }
        }
        #expect(await run(pushing).error == nil)
        #expect(deleted.withLock { $0 } == ["d2", "d3"])
        #expect(there.count == 149)
        #expect(try there.document(id: "d1") == nil)
        // What leaves the filter stays there as it was.
        var leaving = try #require(try here.document(id: "d4"))
        leaving["n"] = 5
        try here.save(&leaving)
        #expect(await run(pushing).progress.documents == 0)
        #expect(try there.document(id: "d4")?["n"] == 4)
        #expect(try pushing.pendingDocumentIds(collection: here) == [])
    }

    @Test func `what a pull filter rejects is not stored, and is told once`() async throws {
        for number in 0..<10 { try there.save(Document(id: "d\(number)", ["n": JSONValue(number)])) }
        let pulling = replicator(.pull) { entry in
            entry.pullFilter = { document, _ in (document["n"]?.int ?? 0) < 5 }
        }
        #expect(
            await errors(pulling) == ["d5": 10_403, "d6": 10_403, "d7": 10_403, "d8": 10_403, "d9": 10_403]
        )
        #expect(here.count == 5)
        #expect(await errors(pulling) == [:])
    }

    @Test func `a list of documents limits both directions`() async throws {
        for number in 0..<20 {
            try here.save(Document(id: "here\(number)"))
            try there.save(Document(id: "there\(number)"))
        }
        let some = replicator { $0.documentIDs = ["here3", "there7", "neither"] }
        #expect(await run(some).error == nil)
        #expect(here.count == 21)
        #expect(there.count == 21)
        #expect(try there.document(id: "here3") != nil)
        #expect(try here.document(id: "there7") != nil)
        // Another list has a checkpoint of its own.
        #expect(await run(replicator { $0.documentIDs = ["here4"] }).progress.documents == 1)
    }

    @Test func `channels are refused by a peer that is no gateway`() async throws {
        let status = await run(replicator(.pull) { $0.channels = ["news"] })
        #expect(status.error?.code == .unsupported)
        #expect(await run(replicator(.pull) { $0.channels = ["a,b"] }).error?.code == .invalidParameter)
    }

    @Test func `a database does not replicate with itself`() async throws {
        let itself = ReplicatorConfiguration(collections: [here], target: DatabaseEndpoint(database: near))
        #expect(await run(Replicator(itself)).error?.code == .invalidParameter)
    }

    @Test func `a document has the same version at another Loveseat`() async throws {
        try here.openStore().beginVersions()
        var document = Document(id: "tower", ["n": 1])
        try here.save(&document)
        #expect(await run(replicator(.push)).progress.documents == 1)
        #expect(try there.document(id: "tower")?.timestamp == document.timestamp)
        document["n"] = 2
        try here.save(&document)
        #expect(await run(replicator(.push)).progress.documents == 1)
        #expect(try there.document(id: "tower")?.timestamp == document.timestamp)
    }

    @Test func `a reset looks at everything again and transfers nothing that is there`() async throws {
        for number in 0..<100 {
            try here.save(Document(id: "here\(number)"))
            try there.save(Document(id: "there\(number)"))
        }
        let both = replicator()
        #expect(await run(both).progress.documents == 200)
        #expect(await run(both, reset: true).progress.documents == 0)
        // Only a reset brings back what was purged.
        try here.purge(id: "there7")
        #expect(await run(both).progress.documents == 0)
        #expect(try here.document(id: "there7") == nil)
        #expect(await run(both, reset: true).progress.documents == 1)
        #expect(try here.document(id: "there7") != nil)
    }

    // MARK: Pending documents

    @Test func `pending documents are those that would be pushed`() async throws {
        let all = replicator(.push)
        #expect(try all.pendingDocumentIds(collection: here) == [])
        for id in ["a", "b", "c", "d", "e"] { try here.save(Document(id: id)) }
        try here.delete(try #require(try here.document(id: "b")))
        try here.purge(id: "c")
        #expect(try all.pendingDocumentIds(collection: here) == ["a", "b", "d", "e"])
        #expect(try all.isDocumentPending("b", collection: here))
        #expect(try !all.isDocumentPending("c", collection: here))
        #expect(try !all.isDocumentPending("none", collection: here))
        let some = replicator(.push) { entry in
            entry.documentIDs = ["a", "d"]
            entry.pushFilter = { document, _ in document.id != "d" }
        }
        #expect(try some.pendingDocumentIds(collection: here) == ["a"])
        await run(all)
        #expect(try all.pendingDocumentIds(collection: here) == [])
        var again = try #require(try here.document(id: "a"))
        again["n"] = 1
        try here.save(&again)
        #expect(try all.pendingDocumentIds(collection: here) == ["a"])
        expectError(.unsupported) { try replicator(.pull).pendingDocumentIds(collection: here) }
        expectError(.notOpen) { try all.isDocumentPending("a", collection: there) }
    }

    @Test func `a document saved while its older revision is pushed is pending until it is pushed too`()
        async throws
    {
        for number in 0..<200 { try here.save(Document(id: "d\(number)")) }
        var configuration = replicator(.push).config
        configuration.continuous = true
        let pushing = Replicator(configuration)
        let events = pushing.documentReplications
        pushing.start()
        var isEdited = false
        for await event in events {
            guard event.documents.contains(where: { $0.id == "d7" }) else { continue }
            if isEdited { break }
            isEdited = true
            var edited = try #require(try here.document(id: "d7"))
            edited["n"] = 7
            try here.save(&edited)
            // The push goes on meanwhile.
            let isPending = try pushing.isDocumentPending("d7", collection: here)
            #expect(try isPending || there.document(id: "d7")?["n"] == 7)
        }
        for await status in pushing.statuses where status.activity == .idle { break }
        #expect(try pushing.pendingDocumentIds(collection: here) == [])
        #expect(try there.document(id: "d7")?["n"] == 7)
        pushing.stop()
        await pushing.waitUntilStopped()
    }

    // MARK: Resolvers

    private func conflict(_ id: String = "d") throws {
        try here.save(Document(id: id, ["mine": 1]))
        try there.save(Document(id: id, ["theirs": 2]))
    }

    @Test(arguments: ["throws", "sleeps", "renames", "strays", "invents"])
    func `a resolver that fails leaves the conflict for the next start`(_ how: String) async throws {
        try conflict()
        try there.save(Document(id: "other", ["n": 1]))
        let elsewhere = try near.createCollection(name: "elsewhere")
        try elsewhere.save(Document(id: "d", ["n": 1]))
        struct Undecided: Error {}
        var configuration = replicator { entry in
            entry.conflictResolver = ConflictResolver.custom { conflict in
                switch how {
                case "throws": throw Undecided()
                case "sleeps":
                    // Deaf to being cancelled.
                    await Task.detached { try? await Task.sleep(for: .seconds(3)) }.value
                    return conflict.localDocument
                case "strays": return try elsewhere.document(id: "d")
                case "renames": return Document(id: "another", ["n": 1])
                default:
                    let digest = BlobDigest("sha1-98vD6/8luAXGlAAAAAAAAAAAAAA=")
                    var merged = conflict.localDocument
                    merged?["blob"] = digest.map {
                        BlobReference(digest: $0, length: 1, contentType: nil).json
                    }
                    return merged
                }
            }
        }.config
        configuration.conflictResolverTimeout = 0.2
        let failing = Replicator(configuration)
        let errors = await errors(failing)
        #expect(errors == ["d": how == "invents" ? 10 : 8])
        #expect(failing.status.error == nil)
        #expect(try here.document(id: "d")?["mine"] == 1)
        #expect(try here.document(id: "other") != nil)
        #expect(await run(replicator()).error == nil)
        #expect(try here.contents() == there.contents())
    }

    @Test func `41: a document that changes while its conflict is resolved is resolved again`() async throws {
        try conflict()
        let calls = Mutex(0)
        let edited = here
        let replicator = replicator { entry in
            entry.conflictResolver = ConflictResolver.custom { conflict in
                let call = calls.withLock { calls in
                    calls += 1
                    return calls
                }
                if call == 1 {
                    var document = try edited.document(id: "d")
                    document?["late"] = 1
                    if let document { try edited.save(document) }
                }
                var merged = conflict.localDocument
                merged?["merged"] = 1
                return merged
            }
        }
        #expect(await run(replicator).error == nil)
        #expect(calls.withLock { $0 } == 2)
        #expect(try here.document(id: "d")?["late"] == 1)
        #expect(try here.document(id: "d")?["merged"] == 1)
        #expect(try here.contents() == there.contents())
    }

    @Test func `resolvers that never agree are reported, and do not spin`() async throws {
        try conflict()
        // Each resolution is changed here while it is on its way, so that it conflicts again.
        let here = here
        let asked = Mutex(0)
        var configuration = replicator { entry in
            entry.conflictResolver = ConflictResolver.custom { conflict in
                let count = asked.withLock { count in
                    count += 1
                    return count
                }
                var document = try here.document(id: "d")
                document?["n"] = JSONValue(count)
                if var document { try here.save(&document) }
                return conflict.remoteDocument
            }
        }.config
        configuration.conflictResolverTimeout = 5
        let spinning = Replicator(configuration)
        #expect(await errors(spinning) == ["d": 8])
        #expect(asked.withLock { $0 } < 100)
    }

    @Test func `blobs of both sides may be in a merged document`() async throws {
        let (mine, theirs) = (
            try near.saveBlob([1, 2, 3], contentType: nil), try far.saveBlob([4, 5, 6], contentType: nil)
        )
        try here.save(Document(id: "d", ["mine": mine.json]))
        try there.save(Document(id: "d", ["theirs": theirs.json]))
        let merging = replicator { entry in
            entry.conflictResolver = ConflictResolver.custom { conflict in
                var merged = conflict.localDocument
                merged?["theirs"] = conflict.remoteDocument?["theirs"]
                return merged
            }
        }
        #expect(await errors(merging) == ["d": nil].compactMapValues { $0 })
        #expect(try here.contents() == there.contents())
        for database in [near, far] {
            #expect(try database.blobContent(mine) == Data([1, 2, 3]))
            #expect(try database.blobContent(theirs) == Data([4, 5, 6]))
        }
    }

    @Test func `a damaged beginning of a blob is thrown away, and the blob fetched whole`() async throws {
        let content = (0..<400_000).map { UInt8(truncatingIfNeeded: $0 &* 31 / 7) }
        let blob = try far.saveBlob(content, contentType: "image/png")
        try there.save(Document(id: "d", ["blob": blob.json]))
        // As a connection that broke leaves it, and a disk that forgot what was written last.
        let (folder, source) = (try #require(near.path), try #require(far.path))
        let names = try FileManager.default.contentsOfDirectory(atPath: "\(source)/blobs")
        let name = try #require(names.first)
        let beginning = Data(content.prefix(200_000).dropLast(10) + [UInt8](repeating: 0, count: 10))
        try beginning.write(to: URL(filePath: "\(folder)/blobs/partial-\(name)"))
        let replicator = replicator(.pull)
        #expect(await errors(replicator) == [:])
        #expect(try near.blobContent(blob) == Data(content))
    }

    // MARK: Old copies

    @Test func `a database that is put back from an old copy converges and loses nothing`() async throws {
        let folder = try #require(near.path)
        func open() throws -> (Database, Collection) {
            let database = try scratch.database("near")
            return (database, try database.defaultCollection())
        }
        func sync(_ collection: Collection) async -> LoveseatError? {
            let configuration = ReplicatorConfiguration(
                collections: [collection],
                target: DatabaseEndpoint(database: far)
            )
            let replicator = Replicator(configuration)
            replicator.start()
            return await replicator.waitUntilStopped().error
        }
        for number in 0..<20 { try here.save(Document(id: "early\(number)")) }
        #expect(await sync(here) == nil)
        try await near.close()
        try FileManager.default.copyItem(atPath: folder, toPath: folder + ".old")
        var (database, collection) = try open()
        for number in 0..<20 { try collection.save(Document(id: "late\(number)")) }
        try collection.delete(try #require(try collection.document(id: "early3")))
        for number in 0..<20 { try there.save(Document(id: "there\(number)")) }
        #expect(await sync(collection) == nil)
        try await database.close()
        try FileManager.default.removeItem(atPath: folder)
        try FileManager.default.moveItem(atPath: folder + ".old", toPath: folder)
        (database, collection) = try open()
        // New edits get sequences that were given to others before.
        for number in 0..<20 { try collection.save(Document(id: "again\(number)")) }
        #expect(await sync(collection) == nil)
        #expect(try collection.contents() == there.contents())
        #expect(collection.count == 79)
        #expect(there.count == 79)
        try await database.close()
    }

    // MARK: Life

    @Test func `a suspended replicator is offline until it is resumed, and misses nothing`() async throws {
        var configuration = replicator().config
        configuration.continuous = true
        let replicator = Replicator(configuration)
        let statuses = replicator.statuses
        replicator.start()
        var iterator = statuses.makeAsyncIterator()
        func wait(for activity: Replicator.ActivityLevel) async {
            while let status = await iterator.next(), status.activity != activity {}
        }
        await wait(for: .idle)
        replicator.suspend()
        await wait(for: .offline)
        try here.save(Document(id: "here"))
        try there.save(Document(id: "there"))
        #expect(replicator.status.activity == .offline)
        replicator.resume()
        try await eventually {
            try here.document(id: "there") != nil && there.document(id: "here") != nil
        }
        replicator.suspend()
        replicator.stop()
        #expect(await replicator.waitUntilStopped().error == nil)
        replicator.resume()
    }
}
