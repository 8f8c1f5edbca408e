import CouchbaseLiteSwift
import Foundation
import LoveseatTesting
import Testing

@Suite(.ownThreads) struct QueryListenerTests {
    private let world: World
    private let query: Query
    private let heard = Heard<[Int]>()
    private var sights: CouchbaseLiteSwift.Collection { world.sights }

    init() throws {
        world = try World()
        query = try world.database.createQuery(
            "SELECT likes FROM travel.sights WHERE likes > $least ORDER BY likes"
        )
        query.parameters = Parameters().setInt(4, forName: "least")
        try save("tower", 9)
    }

    private func save(_ id: String, _ likes: Int) throws {
        try sights.save(document: MutableDocument(id: id, data: ["likes": likes]))
    }

    private func listen(_ heard: Heard<[Int]>) -> ListenerToken {
        query.addChangeListener(withQueue: heard.queue) { [weak query] change in
            #expect(change.query === query)
            #expect(change.error == nil)
            heard.add(change.results?.map { $0.int(at: 0) } ?? [])
        }
    }

    @Test func `a listener gets the rows at once, and again when they have changed`() async throws {
        let token = listen(heard)
        try await eventually { heard.all == [[9]] }
        try save("small", 1)
        try save("orsay", 5)
        try await eventually { heard.all.last == [5, 9] }
        try sights.purge(id: "tower")
        try await eventually { heard.all.last == [5] }
        #expect(heard.settled == [[9], [5, 9], [5]])
        token.remove()
    }

    @Test func `each listener has rows of its own`() async throws {
        let token = listen(heard)
        try await eventually { heard.all == [[9]] }
        let second = Heard<[Int]>()
        let other = listen(second)
        try await eventually { second.all == [[9]] }
        #expect(heard.settled == [[9]])
        token.remove()
        other.remove()
    }

    @Test func `a listener that was removed is not called again`() async throws {
        let token = listen(heard)
        try await eventually { heard.all == [[9]] }
        token.remove()
        try save("orsay", 5)
        let second = Heard<[Int]>()
        let other = listen(second)
        try await eventually { second.all == [[5, 9]] }
        #expect(heard.settled == [[9]])
        other.remove()
    }

    @Test func `other parameters run the query again`() async throws {
        let token = listen(heard)
        try await eventually { heard.all == [[9]] }
        query.parameters = Parameters().setInt(10, forName: "least")
        try await eventually { heard.all == [[9], []] }
        token.remove()
    }

    @Test func `a listener of a query without all parameters gets the error`() async throws {
        query.parameters = nil
        let errors = Heard<Int?>()
        let token = query.addChangeListener(withQueue: errors.queue) { change in
            errors.add(change.error.map { ($0 as NSError).code })
        }
        try await eventually { errors.all == [CBLError.invalidQueryParam] }
        query.parameters = Parameters().setInt(4, forName: "least")
        try await eventually { errors.all == [CBLError.invalidQueryParam, nil] }
        token.remove()
    }

    @Test func `a listener that is added in a batch hears of the batch`() async throws {
        var token: ListenerToken?
        try world.database.inBatch {
            token = listen(heard)
            try save("orsay", 5)
        }
        try await eventually { heard.all.last == [5, 9] }
        token?.remove()
    }

    @Test func `a database closes while its queries are observed`() async throws {
        _ = listen(heard)
        try await eventually { heard.all == [[9]] }
        try world.database.delete()
        #expect(heard.settled == [[9]])
    }
}
