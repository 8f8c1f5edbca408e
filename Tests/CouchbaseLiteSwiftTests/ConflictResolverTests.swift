import CouchbaseLiteSwift
import Foundation
import LoveseatTesting
import Testing

/// A resolver that calls a closure.
private struct Resolver: ConflictResolverProtocol {
    let body: (Conflict) -> Document?
    func resolve(conflict: Conflict) -> Document? { body(conflict) }
}

@Suite(.ownThreads) struct ConflictResolverTests {
    private let pair: ReplicaPair

    init() throws { pair = try ReplicaPair() }

    /// Pulls the document in conflict.
    @discardableResult
    private func pull(_ body: @escaping (Conflict) -> Document?) async throws -> Observed {
        try await pair.replicate(
            pair.config(.pull) {
                $0.documentIDs = ["tower"]
                $0.conflictResolver = Resolver(body: body)
            }
        )
    }

    @Test func `a resolver gets both versions, and may return either`() async throws {
        try pair.makeConflict()
        let ours = pair.ours
        let observed = try await pull { conflict in
            #expect(conflict.documentID == "tower")
            #expect(conflict.localDocument?.string(forKey: "name") == "ours")
            #expect(conflict.remoteDocument?.string(forKey: "name") == "theirs")
            #expect(conflict.localDocument?.collection == ours)
            return conflict.localDocument
        }
        #expect(try observed.event.error == nil)
        #expect(try pair.name() == "ours")
        try pair.save("tower", "theirs again", in: pair.theirs)
        try await pull { $0.remoteDocument }
        #expect(try pair.name() == "theirs again")
    }

    @Test func `a resolver may edit a version, and use the database`() async throws {
        try pair.makeConflict()
        let ours = pair.ours
        let returned = Heard<Bool>()
        let observed = try await pull { conflict in
            returned.add((try? ours.document(id: "tower")) == conflict.localDocument)
            return conflict.remoteDocument?.toMutable().setString("both", forKey: "name")
        }
        #expect(returned.all == [true])
        #expect(try observed.event.error == nil)
        #expect(try pair.name() == "both")
    }

    @Test func `no document deletes`() async throws {
        try pair.makeConflict()
        try await pull { _ in nil }
        #expect(try pair.name() == nil)
    }

    @Test func `a resolver is not asked about two deletions`() async throws {
        try pair.makeConflict()
        for collection in [pair.ours, pair.theirs] {
            try collection.delete(document: try #require(try collection.document(id: "tower")))
        }
        let asked = Heard<String>()
        try await pull { conflict in
            asked.add(conflict.documentID)
            return MutableDocument(id: "tower")
        }
        #expect(asked.all.isEmpty)
        #expect(try pair.ours.document(id: "tower") == nil)
    }

    @Test func `a document with another ID is saved under that of the conflict`() async throws {
        try pair.makeConflict()
        let observed = try await pull { _ in MutableDocument(id: "other", data: ["name": "new"]) }
        #expect(try observed.event.error == nil)
        #expect(try pair.name() == "new")
        #expect(try pair.name("other") == nil)
    }

    @Test func `a resolver is asked again if the document was changed meanwhile`() async throws {
        try pair.makeConflict()
        let ours = pair.ours
        let asked = Heard<String?>()
        let observed = try await pull { conflict in
            asked.add(conflict.localDocument?.string(forKey: "name"))
            if asked.all.count == 1 {
                #expect(throws: Never.self) {
                    try ours.save(document: MutableDocument(id: "tower", data: ["name": "ours again"]))
                }
            }
            return conflict.localDocument
        }
        #expect(asked.all == ["ours", "ours again"])
        #expect(try observed.event.error == nil)
        #expect(try pair.name() == "ours again")
    }

    @Test func `a document that is purged meanwhile is not found`() async throws {
        try pair.makeConflict()
        let ours = pair.ours
        let observed = try await pull { conflict in
            #expect(throws: Never.self) { try ours.purge(id: "tower") }
            return conflict.localDocument
        }
        let error = try #require(try observed.event.error) as NSError
        #expect(error.domain == CBLError.domain)
        #expect(error.code == CBLError.notFound)
    }

    @Test func `a document of another database is refused, and the next pull asks again`() async throws {
        try pair.makeConflict()
        let theirs = pair.theirs
        let observed = try await pull { _ in try? theirs.document(id: "tower") }
        let error = try #require(observed.event.error) as NSError
        #expect(error.domain == CBLError.domain)
        #expect(error.code == CBLError.conflict)
        #expect(observed.error == nil)
        #expect(try pair.name() == "ours")
        try await pull { $0.remoteDocument }
        #expect(try pair.name() == "theirs")
    }

    @Test func `a blob of another database is refused`() async throws {
        let stored = MutableDocument(id: "photo")
            .setBlob(Blob(contentType: "text/plain", data: Data("a".utf8)), forKey: "blob")
        try pair.theirs.save(document: stored)
        // Only the resolver uses it.
        nonisolated(unsafe) let blob = try pair.theirs.document(id: "photo")?.blob(forKey: "blob")
        try pair.makeConflict()
        let observed = try await pull { _ in
            MutableDocument(id: "tower").setBlob(blob, forKey: "blob")
        }
        let error = try #require(observed.event.error) as NSError
        #expect(error.code == CBLError.unexpectedError)
        #expect(error.localizedDescription.contains("saved to a different database"))
    }

    @Test func `a blob of the peer's version is fine`() async throws {
        let content = Data("a".utf8)
        try pair.save("tower", "ours", in: pair.ours)
        let theirs = MutableDocument(id: "tower")
            .setBlob(Blob(contentType: "text/plain", data: content), forKey: "blob")
        try pair.theirs.save(document: theirs)
        let observed = try await pull { conflict in
            MutableDocument(id: "tower").setBlob(
                conflict.remoteDocument?.blob(forKey: "blob"),
                forKey: "mine"
            )
        }
        #expect(try observed.event.error == nil)
        #expect(try pair.ours.document(id: "tower")?.blob(forKey: "mine")?.content == content)
    }

    @Test func `by default a deletion wins`() async throws {
        try pair.save("tower", "Eiffel", in: pair.ours)
        try await pair.replicate()
        try pair.save("tower", "edited", in: pair.ours)
        try pair.theirs.delete(document: try #require(try pair.theirs.document(id: "tower")))
        try await pair.replicate(pair.config(.pull) { $0.conflictResolver = ConflictResolver.default })
        #expect(try pair.name() == nil)
    }

    @Test func `a resolver may ask the default one, which decides as the engine does`() async throws {
        try pair.makeConflict()
        try pair.makeConflict("orsay")
        try await pull { ConflictResolver.default.resolve(conflict: $0) }
        let asked = try pair.name()
        try await pair.replicate(pair.config(.pull) { $0.documentIDs = ["orsay"] })
        // The revision IDs depend on the content alone, so both have the same winner.
        #expect(try pair.name("orsay") == asked)
    }

    @Test func `a conflict at the peer is an error of the document, not of the replicator`() async throws {
        try pair.makeConflict()
        let observed = try await pair.replicate(pair.config(.push))
        let error = try #require(observed.event.error) as NSError
        #expect(error.code == CBLError.httpConflict)
        #expect(observed.error == nil)
    }
}
