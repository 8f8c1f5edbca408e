import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import Testing

/// Compactions and deletions of databases that clients of CouchDB's wire start beside the work of others.
struct CompactionRouteTests {
    @Test func `an upload beside compactions is never refused, and its content stays`() async throws {
        let served = try await ServedDatabase()
        func compacting() async throws {
            for _ in 0..<20 { #expect(try await served.call("POST", "/main/_compact", [:]).status == 202) }
        }
        async let first: Void = compacting()
        async let second: Void = compacting()
        for number in 0..<20 {
            let (client, content) = (served.client, [UInt8](repeating: UInt8(number), count: 20_000))
            let put = try await offPool {
                try client.send("PUT", "/main/a\(number)/x.bin", [("Content-Type", "x/y")], body: content)
            }
            #expect(put.status == 201, "\(put.text)")
            let data = Data("inline \(number)".utf8).base64EncodedString()
            let inline: JSONValue = [
                "_attachments": ["t": ["content_type": "text/plain", "data": .string(data)]]
            ]
            #expect(try await served.call("PUT", "/main/b\(number)", inline).status == 201)
        }
        _ = try await (first, second)
        try served.database.performMaintenance(type: .compact)
        try served.database.performMaintenance(type: .integrityCheck)
        for number in 0..<20 {
            #expect(try await served.call("GET", "/main/a\(number)/x.bin").body.count == 20_000)
            #expect(try await served.call("GET", "/main/b\(number)/t").text == "inline \(number)")
        }
        await served.listener.stop()
    }

    @Test func `work beside the deletion of its database is done or 404, and no answer has text of SQL`()
        async throws
    {
        let served = try await ServedDatabase { $0.allowsDatabaseCreation = true }
        func remaking() async throws {
            for _ in 0..<40 {
                _ = try await served.call("DELETE", "/store")
                _ = try await served.call("PUT", "/store")
            }
        }
        async let remade: Void = remaking()
        var answers: [RawClient.Answer] = []
        for number in 0..<40 {
            answers.append(try await served.call("PUT", "/store/b\(number)", ["n": 1]))
            answers.append(
                try await served.call("POST", "/store/_bulk_docs", ["docs": [["n": 1], ["n": 2]]])
            )
            answers.append(try await served.call("GET", "/store/_all_docs?include_docs=true"))
            answers.append(try await served.call("GET", "/store/b\(number)"))
            answers.append(try await served.call("POST", "/store/_find", ["selector": ["n": 1]]))
            answers.append(try await served.call("GET", "/store/_changes?style=all_docs"))
        }
        try await remade
        for answer in answers {
            #expect([200, 201, 202, 404, 409].contains(answer.status), "\(answer.status) \(answer.text)")
            let text = answer.text.lowercased()
            #expect(!text.contains("sqlite"))
            #expect(!text.contains("no such table"))
            #expect(!text.contains("select "))
        }
        await served.listener.stop()
    }
}
