import Crypto
import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatTesting
import Testing

/// Blobs in properties that a peer says are compressed.
struct CompressedBlobTests {
    private static let plain = Array(String(repeating: "a line\n", count: 1_000).utf8)
    private static let packed = GzipMembersTests.gzip(plain[...])

    /// A document with such a blob, and whether it is as it says.
    private struct Claim: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var content = packed
        var length: Int? = plain.count
        var encodedLength: Int? = packed.count
        var isTrue = false

        func document(_ id: String) -> JSONValue {
            let digest = JSONValue.string(BlobDigest(sha1: Insecure.SHA1.hash(data: content)).text)
            var blob: JSONValue = [
                "@type": "blob", "content_type": "text/plain", "digest": digest, "encoding": "gzip",
            ]
            if let length { blob["length"] = JSONValue(length) }
            if let encodedLength { blob["encoded_length"] = JSONValue(encodedLength) }
            return [
                "_id": .string(id), "_rev": "1-aa", "_revisions": ["start": 1, "ids": ["aa"]],
                "list": [["p": blob]],
                "_attachments": [
                    "blob_/list/0/p": [
                        "data": .string(Base64.encode(content)), "digest": digest, "revpos": 1,
                        "encoding": "gzip", "content_type": "text/plain",
                    ]
                ],
            ]
        }

        static let all = [
            Claim(testDescription: "true", isTrue: true),
            Claim(testDescription: "without lengths", length: nil, encodedLength: nil, isTrue: true),
            Claim(testDescription: "not gzip", content: Array("not gzip at all".utf8), encodedLength: 15),
            Claim(
                testDescription: "cut",
                content: Array(packed.dropLast()),
                encodedLength: packed.count - 1
            ),
            Claim(testDescription: "another length", length: plain.count + 1),
            Claim(testDescription: "another length of what is stored", encodedLength: packed.count - 1),
            Claim(testDescription: "a negative length", encodedLength: -1),
        ]
    }

    @Test(arguments: Claim.all)
    private func `a listener takes a compressed blob only if it is what its document says`(_ claim: Claim)
        async throws
    {
        let served = try await ServedDatabase()
        let answer = try await served.call(
            "POST",
            "/main/_bulk_docs",
            ["new_edits": false, "docs": [claim.document("x"), ["_id": "y", "_rev": "1-aa"]]]
        )
        #expect(answer.status == 201)
        #expect(answer.json.array?.compactMap { $0["error"]?.string } == (claim.isTrue ? [] : ["forbidden"]))
        #expect(try await served.call("GET", "/main/y").status == 200)
        #expect(try await served.call("GET", "/main/x").status == (claim.isTrue ? 200 : 404))
        // The content may be here from another document.
        var other = claim.document("z")
        other["_attachments"] = ["blob_/list/0/p": ["stub": true, "revpos": 1]]
        let alone = try await served.call("PUT", "/main/z?new_edits=false", other)
        #expect(claim.isTrue ? alone.status == 201 : alone.status >= 400, "\(alone.text)")
        await served.listener.stop()
    }

    @Test(arguments: Claim.all)
    private func `a pull stores a compressed blob only if it is what its document says`(_ claim: Claim)
        async throws
    {
        let document = claim.document("x").description
        let server = try RawServer { request in
            RawServer.emptyDatabase(request) { request in
                if request.target.hasPrefix("/db/_changes"), !request.target.contains("since") {
                    return RawServer.json(
                        200,
                        #"{"results":[{"seq":"1","id":"x","changes":[{"rev":"1-aa"}]}],"last_seq":"1"}"#
                    )
                }
                return request.target.hasPrefix("/db/x?") ? RawServer.json(200, document) : nil
            }
        }
        let active = try ActiveSide()
        let url = try #require(URL(string: "http://127.0.0.1:\(server.port)/db"))
        let pass = try await active.replicate(url, .pull)
        #expect(pass.status.error == nil)
        #expect(pass.failed.mapValues(\.code) == (claim.isTrue ? [:] : ["x": .remoteError]))
        #expect(try active.leaves("x") == (claim.isTrue ? ["1-aa"] : []))
    }
}
