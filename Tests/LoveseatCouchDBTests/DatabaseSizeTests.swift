import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import Testing

/// The sizes that a database's description has.
@Suite(.timeLimit(.minutes(1)))
struct DatabaseSizeTests {
    private func sizes(_ served: ServedDatabase, as user: String? = nil) async throws -> [String: Int] {
        let info = try await served.call("GET", "/main", as: user).json
        return try ["file", "active", "external"].reduce(into: [:]) { sizes, name in
            sizes[name] = try #require(info["sizes"]?[name]?.int, "\(info)")
        }
    }

    @Test(arguments: [100, 3_000])
    func `the sizes are those of the documents and of their attachments`(_ count: Int) async throws {
        let served = try await ServedDatabase()
        let documents = (0..<count).map {
            Document(id: "d\($0)", ["text": .string(String(repeating: "x", count: 1_000))])
        }
        try served.database.defaultCollection().save(documents)
        let before = try await sizes(served)
        let bodies = try await served.database.defaultCollection().documents(.all).reduce(0) {
            $0 + $1.json.bytes.count
        }
        #expect(before["external"] == bodies)
        #expect(try #require(before["file"]) >= bodies)
        #expect(try #require(before["active"]) >= bodies)
        let client = served.client
        let put = try await offPool {
            try client.send(
                "PUT",
                "/main/a/x.bin",
                [("Content-Type", "x/y")],
                body: [UInt8](repeating: 7, count: 1_000_000)
            )
        }
        #expect(put.status == 201)
        let after = try await sizes(served)
        if count == 100 {
            // All documents are measured, so that the attachment is counted exactly.
            let external = try #require(after["external"])
            #expect(external >= bodies + 1_000_000)
            #expect(external < bodies + 1_000_500)
            #expect(try #require(after["file"]) >= 1_000_000 + bodies)
        }
        await served.listener.stop()
    }

    @Test func `free pages of the file are not active`() async throws {
        let served = try await ServedDatabase()
        let collection = try served.database.defaultCollection()
        let text = String(repeating: "x", count: 10_000)
        try collection.save((0..<200).map { Document(id: "d\($0)", ["text": .string(text)]) })
        for number in 0..<200 { try collection.purge(id: "d\(number)") }
        let sizes = try await sizes(served)
        #expect(sizes["external"] == 0)
        #expect(try #require(sizes["file"]) > 2_000_000)
        #expect(try #require(sizes["active"]) < 1_000_000)
        await served.listener.stop()
    }

    @Test func `a client sees the sizes of the documents that it may read, and no others`() async throws {
        let served = try await ServedDatabase {
            $0.authenticator = ListenerPasswordAuthenticator { $0 == $1 }
            $0.accessPolicy = AccessPolicy { peer, _, document in
                document == nil || document?["owner"]?.string == peer.username ? .write : .none
            }
        }
        let text = String(repeating: "x", count: 10_000)
        try served.database.defaultCollection().save([
            Document(id: "hers", ["owner": "ana", "text": .string(text)]),
            Document(id: "his", ["owner": "bob"]),
        ])
        #expect(try await sizes(served, as: "ana") == ["file": 10_025, "active": 10_025, "external": 10_025])
        #expect(try await sizes(served, as: "bob") == ["file": 15, "active": 15, "external": 15])
        await served.listener.stop()
    }
}
