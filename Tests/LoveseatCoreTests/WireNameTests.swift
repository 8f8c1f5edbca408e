import LoveseatCore
import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Testing

/// Documents whose IDs Couchbase's protocol cannot carry. Clients of CouchDB's wire make them.
struct WireNameTests {
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    private func run(_ near: Database, _ far: Database, _ type: ReplicatorType) async throws -> [String:
        LoveseatError]
    {
        var configuration = ReplicatorConfiguration(
            collections: [try near.defaultCollection()],
            target: DatabaseEndpoint(database: far)
        )
        configuration.replicatorType = type
        let replicator = Replicator(configuration)
        let events = replicator.documentReplications
        replicator.start()
        var errors: [String: LoveseatError] = [:]
        for await event in events {
            for document in event.documents { errors[document.id] = document.error ?? errors[document.id] }
        }
        #expect(await replicator.waitUntilStopped().error == nil)
        return errors
    }

    @Test(arguments: [true, false])
    func `an ID that is too long or has a NUL keeps no other document from being pushed or pulled`(
        _ pushes: Bool
    ) async throws {
        let (near, far) = (try scratch.database("near"), try scratch.database("far"))
        let source = pushes ? near : far
        let bad = [
            String(repeating: "x", count: 256), String(repeating: "é", count: 128), "a\0b", "\0",
            String(repeating: "y", count: 5_000),
        ]
        let good = [String(repeating: "x", count: 255), String(repeating: "é", count: 127), "a\u{1}b", "c"]
        let collection = try source.defaultCollection()
        let revision = try #require(RevisionID("1-aa"))
        var random = SeededGenerator(seed: 1)
        let ids = (bad + good + (0..<300).map { "d\($0)" }).shuffled(using: &random)
        try collection.openStore().write { transaction in
            for id in ids {
                try transaction.insertBranch(
                    [revision],
                    of: id,
                    in: collection.handle,
                    body: .emptyObject,
                    isDeleted: false
                )
            }
        }
        // Each push says so.
        for _ in 0..<2 {
            let errors = try await run(near, far, pushes ? .push : .pull)
            if pushes {
                #expect(errors.keys.sorted() == bad.sorted())
                #expect(errors.values.allSatisfy { $0.code == .badDocID })
            } else {
                #expect(errors.isEmpty)
            }
        }
        let target = try (pushes ? far : near).defaultCollection()
        #expect(target.count == UInt64(ids.count - bad.count))
        for id in good { #expect(try target.document(id: id) != nil, "\(id.utf8.count) bytes") }
    }
}
