import Crypto
import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Testing

/// Attachments are named by their MD5, as CouchDB names them (protocol/couchdb.md §6.1).
struct AttachmentDigestTests {
    static func md5(_ content: [UInt8]) -> String {
        "md5-" + Base64.encode(Array(Insecure.MD5.hash(data: content)))
    }

    static func sha1(_ content: [UInt8]) -> String {
        BlobDigest(sha1: Insecure.SHA1.hash(data: content)).text
    }

    static func data(_ content: [UInt8]) -> JSONValue {
        ["content_type": "image/png", "data": .string(Base64.encode(content))]
    }

    /// A document in parts, with one attachment.
    static func parts(_ attachment: JSONValue, _ content: [UInt8], _ revision: String? = nil) -> [UInt8] {
        var document: JSONValue = ["_attachments": ["a": attachment]]
        document["_rev"] = revision.map { .string($0) }
        let head = "--B\r\nContent-Type: application/json\r\n\r\n\(document)\r\n--B\r\n\r\n"
        return Array(head.utf8) + content + Array("\r\n--B--".utf8)
    }

    static let inParts = [("Content-Type", "multipart/related; boundary=B")]

    // MARK: Every answer

    /// What a listener's database has: the attachments of each document, by what is stored.
    private struct Contents {
        var expected: [String: [String: String]] = [:]

        mutating func note(_ id: String, _ name: String, _ stored: [UInt8]) {
            expected[id, default: [:]][name] = md5(stored)
        }
    }

    private static func content(_ random: inout SeededGenerator) -> [UInt8] {
        random.bytes(random.pick([0, 1, 3, 100, 5_000, 70_000, 300_000]))
    }

    /// Stores random attachments in every way that there is.
    private static func fill(_ served: ServedDatabase, _ random: inout SeededGenerator) async throws
        -> Contents
    {
        var contents = Contents()
        let client = served.client
        for id in ["inline", "bulk"] {
            var table: JSONValue = [:]
            for name in ["a", "ä b", "c/d"].prefix(random.int(1...3)) {
                let content = content(&random)
                table[name] = data(content)
                contents.note(id, name, content)
            }
            let document: JSONValue = ["_id": .string(id), "_attachments": table]
            let answer =
                id == "inline"
                ? try await served.call("PUT", "/main/inline", document)
                : try await served.call("POST", "/main/_bulk_docs", ["docs": [document]])
            #expect(answer.status == 201, "\(answer.text)")
        }
        // By itself, as it is and compressed; and in parts.
        let (plain, text) = (content(&random), content(&random))
        let packed = GzipMembersTests.gzip(text[...])
        contents.note("alone", "a", plain)
        contents.note("packed", "a", packed)
        let first = try await offPool { try client.send("PUT", "/main/alone/a", body: plain) }
        #expect(first.status == 201, "\(first.text)")
        let second = try await offPool {
            try client.send("PUT", "/main/packed/a", [("Content-Encoding", "gzip")], body: packed)
        }
        #expect(second.status == 201, "\(second.text)")
        let part = content(&random)
        contents.note("parts", "a", part)
        let message = parts(["follows": true, "length": JSONValue(part.count)], part)
        let third = try await offPool { try client.send("PUT", "/main/parts", inParts, body: message) }
        #expect(third.status == 201, "\(third.text)")
        // An app's, in a property.
        let own = content(&random)
        let reference = try served.database.saveBlob(own, contentType: "image/png")
        try served.database.defaultCollection().save(Document(id: "app", ["photo": reference.json]))
        contents.note("app", "blob_/photo", own)
        return contents
    }

    /// The documents in an answer, alone, in lists, in lines and in parts.
    private static func documents(in answer: RawClient.Answer) -> [JSONValue] {
        var found: [JSONValue] = []
        func visit(_ value: JSONValue) {
            if value["_id"] != nil { found.append(value) }
            switch value {
            case .array(let items): items.forEach(visit)
            case .object(let members): for (_, member) in members { visit(member) }
            case .null, .bool, .number, .string: break
            }
        }
        if let whole = try? JSONElement(scanning: answer.body, limits: .envelope) {
            visit(whole.value)
            return found
        }
        for line in answer.body.split(whereSeparator: { $0 == 10 || $0 == 13 }) {
            let text = line.starts(with: "data: ".utf8) ? line.dropFirst(6) : line
            guard text.first == UInt8(ascii: "{") else { continue }
            if let value = (try? JSONElement(scanning: Array(text), limits: .envelope))?.value {
                visit(value)
            }
        }
        return found
    }

    private static let all: JSONValue = [
        "docs": .array(["inline", "bulk", "alone", "packed", "parts", "app"].map { ["id": $0] })
    ]

    /// Requests for all documents.
    private static let lists: [(method: String, path: String, json: JSONValue?, accept: String)] = [
        ("GET", "_all_docs?include_docs=true", nil, "*/*"),
        ("GET", "_all_docs?include_docs=true&attachments=true", nil, "*/*"),
        (
            "POST", "_all_docs?include_docs=true",
            ["keys": ["inline", "bulk", "alone", "packed", "parts", "app"]], "*/*"
        ),
        ("GET", "_changes?include_docs=true", nil, "*/*"),
        ("GET", "_changes?include_docs=true&attachments=true&style=all_docs", nil, "*/*"),
        ("GET", "_changes?include_docs=true&feed=longpoll", nil, "*/*"),
        ("GET", "_changes?include_docs=true&feed=continuous&limit=6", nil, "*/*"),
        ("GET", "_changes?include_docs=true&feed=eventsource&limit=6", nil, "*/*"),
        ("POST", "_bulk_get", all, "application/json"),
        ("POST", "_bulk_get?attachments=true&revs=true", all, "application/json"),
        ("POST", "_bulk_get", all, "multipart/mixed"),
        ("POST", "_bulk_get?attachments=true", all, "multipart/related"),
        ("POST", "_find", ["selector": [:]], "*/*"),
        ("POST", "_find", ["selector": [:], "fields": ["_id", "_attachments"]], "*/*"),
    ]

    private static let forms: [(query: String, accept: String)] = [
        ("", "*/*"), ("?revs=true&att_encoding_info=true", "application/json"),
        ("?attachments=true", "application/json"), ("?attachments=true", "multipart/related"),
        ("?attachments=true&att_encoding_info=true", "application/json"),
        ("?atts_since=%5B%221-x%22%5D", "application/json"), ("?open_revs=all", "application/json"),
        ("?open_revs=all&revs=true", "multipart/mixed"),
    ]

    @Test(arguments: PropertySeeds.of("ATTACHMENT_DIGEST", 3))
    func `every answer names a content by the MD5 of what is stored`(_ seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let served = try await ServedDatabase()
        let expected = try await Self.fill(served, &random).expected
        func expectNames(_ answer: RawClient.Answer, _ ids: Set<String>, _ what: String) {
            #expect(answer.status == 200, "\(what): \(answer.text.prefix(300))")
            let documents = Self.documents(in: answer)
            #expect(Set(documents.compactMap { $0["_id"]?.string }) == ids, "\(what)")
            for document in documents {
                let table = document["_attachments"]?.object ?? [:]
                let names = expected[document["_id"]?.string ?? ""] ?? [:]
                #expect(Set(table.keys) == Set(names.keys), "\(what)")
                for (name, digest) in names {
                    #expect(table[name]?["digest"]?.string == digest, "\(what): \(name)")
                }
            }
        }
        // Whichever answer is the first, it has to compute those of the app.
        for list in Self.lists.shuffled(using: &random) {
            let answer = try await served.call(
                list.method,
                "/main/\(list.path)",
                list.json,
                [("Accept", list.accept)]
            )
            expectNames(answer, Set(expected.keys), "\(list.method) \(list.path) \(list.accept)")
        }
        for (id, names) in expected {
            for form in Self.forms {
                let answer = try await served.call(
                    "GET",
                    "/main/\(id)\(form.query)",
                    nil,
                    [("Accept", form.accept)]
                )
                expectNames(answer, [id], "\(id)\(form.query) \(form.accept)")
            }
            for (name, digest) in names {
                try await expectTag(served, id, name, String(digest.dropFirst(4)))
                let found = try await served.call(
                    "POST",
                    "/main/_find",
                    [
                        "selector": ["_attachments": .object([name: ["digest": .string(digest)]])],
                        "fields": ["_id"],
                    ]
                )
                let ids = found.json["docs"]?.array?.compactMap { $0["_id"]?.string } ?? []
                #expect(ids.contains(id), "\(found.text)")
            }
        }
        await served.listener.stop()
    }

    private func expectTag(_ served: ServedDatabase, _ id: String, _ name: String, _ digest: String)
        async throws
    {
        let path = name.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? name
        let tag = "\"\(digest)\""
        for (method, known, status) in [("GET", nil, 200), ("HEAD", nil, 200), ("GET", tag, 304)] {
            let headers = known.map { [("If-None-Match", $0)] } ?? []
            let answer = try await served.call(method, "/main/\(id)/\(path)", nil, headers)
            #expect(answer.status == status, "\(id)/\(name)")
            #expect(answer.headers["etag"] == tag, "\(id)/\(name)")
        }
    }

    @Test func `a content that is lost or damaged keeps no answer from coming`() async throws {
        let served = try await ServedDatabase()
        let folder = try served.database.store.blobs.folder
        for (id, content) in [("lost", [1, 2, 3] as [UInt8]), ("damaged", [4, 5, 6])] {
            let reference = try served.database.saveBlob(content, contentType: "image/png")
            try served.database.defaultCollection().save(Document(id: id, ["b": reference.json]))
            let file = URL(filePath: "\(folder)/\(reference.digest.hexadecimalText)")
            if id == "lost" {
                try FileManager.default.removeItem(at: file)
            } else {
                try Data([7, 8, 9]).write(to: file)
            }
        }
        let answer = try await served.call("GET", "/main/_all_docs?include_docs=true")
        #expect(answer.ids == ["damaged", "lost"], "\(answer.text)")
        for (row, content) in zip(answer.json["rows"]?.array ?? [], [[4, 5, 6] as [UInt8], [1, 2, 3]]) {
            // Its MD5 cannot be known.
            let entry = row["doc"]?["_attachments"]?["blob_/b"]
            #expect(entry?["digest"]?.string == Self.sha1(content))
        }
        await served.listener.stop()
    }

    // MARK: What clients name

    /// A digest of a content in a form, or of another content.
    enum Named: CaseIterable, CustomTestStringConvertible {
        case md5, sha1, none, wrongMD5, wrongSHA1

        var testDescription: String { "\(self)" }
        var isWrong: Bool { self == .wrongMD5 || self == .wrongSHA1 }

        func digest(_ content: [UInt8]) -> JSONValue? {
            switch self {
            case .md5: .string(AttachmentDigestTests.md5(content))
            case .sha1: .string(AttachmentDigestTests.sha1(content))
            case .none: nil
            case .wrongMD5: .string(AttachmentDigestTests.md5(content + [0]))
            case .wrongSHA1: .string(AttachmentDigestTests.sha1(content + [0]))
            }
        }
    }

    @Test(arguments: Named.allCases)
    func `content in parts is taken if its digest is right`(_ named: Named) async throws {
        let served = try await ServedDatabase()
        let content: [UInt8] = [1, 2, 3]
        var entry: JSONValue = ["follows": true, "length": 3]
        entry["digest"] = named.digest(content)
        let (client, message) = (served.client, Self.parts(entry, content))
        let answer = try await offPool { try client.send("PUT", "/main/d", Self.inParts, body: message) }
        #expect(answer.status == (named.isWrong ? 400 : 201), "\(answer.text)")
        let got = try await served.call("GET", "/main/d/a")
        #expect(got.status == (named.isWrong ? 404 : 200))
        if !named.isWrong { #expect(got.body == content) }
        await served.listener.stop()
    }

    @Test(arguments: Named.allCases)
    func `a stub keeps the content, under another name by its digest alone`(_ named: Named) async throws {
        let served = try await ServedDatabase()
        let content: [UInt8] = [1, 2, 3]
        let first = try await served.call("PUT", "/main/d", ["_attachments": ["a": Self.data(content)]])
        #expect(first.status == 201, "\(first.text)")
        var stub: JSONValue = ["stub": true, "content_type": "image/png"]
        stub["digest"] = named.digest(content)
        for isBatch in [false, true] {
            let revision = try await served.call("GET", "/main/d").json["_rev"]
            let same: JSONValue = ["_id": "d", "_rev": revision ?? nil, "_attachments": ["a": stub]]
            let answer =
                isBatch
                ? try await served.call("POST", "/main/_bulk_docs", ["docs": [same]])
                : try await served.call("PUT", "/main/d", same)
            #expect(answer.status == 201, "\(answer.text)")
            #expect(try await served.call("GET", "/main/d/a").body == content)
        }
        let revision = try await served.call("GET", "/main/d").json["_rev"]
        let renamed: JSONValue = ["_rev": revision ?? nil, "_attachments": ["b": stub]]
        let isFound = named == .md5 || named == .sha1
        let answer = try await served.call("PUT", "/main/d", renamed)
        #expect(answer.status == (isFound ? 201 : 412), "\(answer.text)")
        #expect(try await served.call("GET", "/main/d/\(isFound ? "b" : "a")").body == content)
        await served.listener.stop()
    }

    @Test(arguments: [true, false])
    func `a stub of a blob in a property is compared with it by either digest`(_ isMD5: Bool) async throws {
        func name(_ content: [UInt8]) -> JSONValue {
            .string(isMD5 ? Self.md5(content) : Self.sha1(content))
        }
        let served = try await ServedDatabase()
        let (old, new): ([UInt8], [UInt8]) = ([1, 2, 3], [4, 5, 6, 7])
        let blob = try served.database.saveBlob(old, contentType: "image/png")
        try served.database.defaultCollection().save(Document(id: "d", ["p": blob.json]))
        let first = try await served.call("GET", "/main/d").json
        // It only repeats the blob.
        var stub: JSONValue = ["stub": true, "content_type": "image/png", "digest": name(old)]
        var edit = first
        edit["_attachments"] = ["blob_/p": stub]
        edit["n"] = 1
        let second = try await served.call("PUT", "/main/d", edit)
        #expect(second.status == 201, "\(second.text)")
        #expect(try served.database.defaultCollection().document(id: "d")?["p"] == blob.json)
        // It is another content, which an earlier revision has, while the property names the blob.
        edit["_rev"] = second.json["rev"]
        edit["_attachments"] = ["blob_/p": Self.data(new)]
        let third = try await served.call("PUT", "/main/d", edit)
        #expect(third.status == 201, "\(third.text)")
        stub["digest"] = name(new)
        edit["_rev"] = third.json["rev"]
        edit["_attachments"] = ["blob_/p": stub]
        edit["n"] = 2
        let fourth = try await served.call("PUT", "/main/d", edit)
        #expect(fourth.status == 201, "\(fourth.text)")
        let document = try #require(try served.database.defaultCollection().document(id: "d"))
        #expect(document["n"] == 2)
        #expect(document["p"]?["digest"]?.string == Self.sha1(new))
        await served.listener.stop()
    }

    @Test(arguments: [Named.md5, .sha1, .none])
    func `a revision that is made has the same ID whichever digests its client names`(_ named: Named)
        async throws
    {
        let served = try await ServedDatabase()
        let content: [UInt8] = [1, 2, 3]
        var entry = Self.data(content)
        entry["digest"] = named.digest(content)
        let first = try await served.call("PUT", "/main/d", ["n": 1, "_attachments": ["a": entry]])
        var stub: JSONValue = ["stub": true, "revpos": 1, "content_type": "image/png", "length": 3]
        stub["digest"] = named.digest(content)
        let second = try await served.call(
            "PUT",
            "/main/d",
            ["_rev": first.json["rev"] ?? nil, "n": 2, "_attachments": ["a": stub]]
        )
        // That of the body as it has been stored ever since.
        var parent: RevisionID?
        for (number, answer) in [first, second].enumerated() {
            let stored: JSONValue = [
                "content_type": "image/png", "digest": .string(Self.sha1(content)), "length": 3,
                "revpos": 1, "stub": true,
            ]
            let body = JSONText(canonical: ["n": JSONValue(number + 1), "_attachments": ["a": stored]])
            let wanted = try BodyDigest.revisionID(parent: parent, isDeleted: false, body: body)
            #expect(answer.json["rev"]?.string == wanted.text, "\(answer.text)")
            parent = wanted
        }
        await served.listener.stop()
    }
}
