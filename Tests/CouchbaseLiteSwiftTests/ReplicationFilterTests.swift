import CouchbaseLiteSwift
import Foundation
import LoveseatTesting
import Testing

@Suite(.ownThreads) struct ReplicationFilterTests {
    private let pair: ReplicaPair

    init() throws { pair = try ReplicaPair() }

    @Test func `a push filter gets documents of the collection, deletions included`() async throws {
        try pair.save("tower", "Eiffel", in: pair.ours)
        try pair.save("hidden", "Secret", in: pair.ours)
        let gone = MutableDocument(id: "gone")
        try pair.ours.save(document: gone)
        try await pair.replicate(pair.config(.push) { $0.documentIDs = ["gone"] })
        try pair.ours.delete(document: gone)
        let heard = Heard<String>()
        let ours = pair.ours
        let config = pair.config(.push) {
            $0.pushFilter = { document, flags in
                #expect(document.collection == ours)
                heard.add("\(document.id) \(document.string(forKey: "name") ?? "-") \(flags.rawValue)")
                return document.id != "hidden"
            }
        }
        try await pair.replicate(config)
        #expect(Set(heard.all) == ["gone - 1", "hidden Secret 0", "tower Eiffel 0"])
        #expect(try pair.theirs.document(id: "tower") != nil)
        #expect(try pair.theirs.document(id: "hidden") == nil)
        #expect(try pair.theirs.document(id: "gone") == nil)
    }

    @Test func `a pull filter decides what is stored`() async throws {
        try pair.save("tower", "Eiffel", in: pair.theirs)
        try pair.save("hidden", "Secret", in: pair.theirs)
        let ours = pair.ours
        let config = pair.config(.pull) {
            $0.pullFilter = { document, _ in
                #expect(document.collection == ours)
                return document["name"].string == "Eiffel"
            }
        }
        try await pair.replicate(config)
        #expect(try pair.name() == "Eiffel")
        #expect(try pair.name("hidden") == nil)
    }

    @Test func `only the documents that are named are replicated`() async throws {
        for id in ["a", "b", "c"] { try pair.save(id, "n", in: pair.ours) }
        let observed = try await pair.replicate(pair.config { $0.documentIDs = ["a", "c"] })
        #expect(Set(observed.documents.all.map(\.id)) == ["a", "c"])
        #expect(pair.theirs.count == 2)
    }
}
