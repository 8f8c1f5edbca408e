import LoveseatCouchDBReplication
import LoveseatModel
import Testing

/// Documents and attachments as peers of CouchDB's wire send them, as values. Tests name the changes that they notice.
struct DocumentValueTests {
    private func document(_ text: String) throws -> IncomingDocument {
        try IncomingDocument(try JSONElement(parsing: Array(text.utf8)))
    }

    // MARK: Documents

    /// A reserved member that becomes content, or content that is taken for a reserved member.
    @Test func `reserved members say something about a document, and are no content`() throws {
        let whole = try document(
            #"{"b":2,"_id":"d","_rev":"2-bb","_deleted":true,"_conflicts":["1-x"],"_cv":1,"_exp":5,"a":{"_x":1}}"#
        )
        #expect(whole.id == "d")
        #expect(whole.history.map(\.text) == ["2-bb"])
        #expect(whole.isDeleted)
        #expect(whole.hasExpiration)
        #expect(!whole.isRemoved)
        #expect(whole.body.description == #"{"a":{"_x":1},"b":2}"#)
        let plain = try document("{}")
        #expect(plain.id == nil)
        #expect(plain.history.isEmpty)
        #expect(!plain.isDeleted)
        #expect(!plain.hasExpiration)
        #expect(plain.body.description == "{}")
        #expect(try document(#"{"_removed":true}"#).isRemoved)
        #expect(try document(#"{"_rev":""}"#).history.isEmpty)
        #expect(
            try document(#"{"_replication_id":"r","x":1}"#).body.description
                == #"{"_replication_id":"r","x":1}"#
        )
        let history = #"{"_rev":"9-x","_revisions":{"start":3,"ids":["c","b"]}}"#
        #expect(try document(history).history.map(\.text) == ["3-c", "2-b"])
    }

    /// Keys with escapes, repeated ones, and the comma between members.
    @Test(arguments: [
        (#"{"b":1,"a":2,"b":3}"#, #"{"a":2,"b":3}"#), (#"{"a":1,"a":2,"a":3}"#, #"{"a":3}"#),
        (#"{"\u0061":1,"_id":"d"}"#, #"{"a":1}"#), (#"{"\u005fid":"d","b":1}"#, #"{"b":1}"#),
        (#"{"\u0061":1,"_replication_id":"r"}"#, #"{"_replication_id":"r","a":1}"#),
        (#"{"a" : [ 1 , 2 ] , "aa":{}}"#, #"{"a":[1,2],"aa":{}}"#),
    ])
    func `content is kept in its canonical form, and of a repeated key the last value`(
        _ text: String,
        _ body: String
    ) throws {
        #expect(try document(text).body.description == body)
        if text.contains("id\":\"d") { #expect(try document(text).id == "d") }
    }

    @Test(arguments: [
        ("[]", 400), (#"{"_id":5}"#, 400), (#"{"_rev":5}"#, 400), (#"{"_rev":"x"}"#, 400),
        (#"{"_deleted":1}"#, 400),
        (#"{"_removed":false}"#, 400), (#"{"_new":1}"#, 400), (#"{"\u005fnew":1}"#, 400),
        (#"{"_attachments":[]}"#, 400),
        (#"{"_attachments":{"":{"stub":true}}}"#, 400), (#"{"_attachments":{"_a":{"stub":true}}}"#, 400),
        (#"{"_attachments":{"a":5}}"#, 400), (#"{"_attachments":{"a":{}}}"#, 400),
        (#"{"_attachments":{"a":{"stub":false}}}"#, 400), (#"{"_attachments":{"a":{"data":5}}}"#, 400),
        (#"{"_attachments":{"a":{"stub":true,"length":-1}}}"#, 400),
        (#"{"_attachments":{"a":{"stub":true,"encoded_length":"x"}}}"#, 400),
    ])
    func `what is not a document is refused`(_ text: String, _ status: Int) throws {
        let error = #expect(throws: CouchDBError.self) { try document(text) }
        #expect(error?.status == status)
    }

    /// Each clause of the rule for reserved IDs.
    @Test func `only two kinds of ID begin with an underscore, and one of them replicates`() {
        for (id, isValid, replicates) in [
            ("", false, false), ("a", true, true), ("_a", false, false), ("_design", false, false),
            ("_design/", false, false), ("_design/x", true, true), ("_local", false, false),
            ("_local/", false, false),
            ("_local/x", true, false), ("a_", true, true),
        ] {
            #expect(((try? IncomingDocument.check(id)) != nil) == isValid, "\(id)")
            #expect(((try? IncomingDocument.checkReplicated(id)) != nil) == replicates, "\(id)")
        }
    }

    // MARK: Attachments

    @Test func `an attachment is a stub, follows, or is in its entry`() throws {
        let table = #"""
            {"_attachments":{"s":{"stub":true,"follows":true,"revpos":3,"length":0,"digest":"d"},
            "f":{"stub":false,"follows":true,"length":null,"encoding":"gzip","encoded_length":7},
            "i":{"data":"QQ==","content_type":"x/y","encoding":"br"}}}
            """#
        let all = try document(table).attachments
        #expect(all.map(\.name) == ["s", "f", "i"])
        guard case .stub = all[0].content, case .follows = all[1].content,
            case .inline(let data) = all[2].content
        else {
            Issue.record("\(all)")
            return
        }
        #expect(data.string == "QQ==")
        #expect(all.map(\.position) == [3, nil, nil])
        #expect(all.map(\.length) == [0, nil, nil])
        #expect(all.map(\.digest) == ["d", nil, nil])
        #expect(all.map(\.encoding) == [nil, "gzip", nil])
        #expect(all.map(\.encodedLength) == [nil, 7, nil])
        #expect(all.map(\.contentType) == [nil, nil, "x/y"])
    }

    private static let digest = BlobDigest(sha1: [UInt8](repeating: 7, count: 20))
    private static let other = BlobDigest(sha1: [UInt8](repeating: 8, count: 20))
    private static let blob = BlobReference(digest: digest, length: 3, contentType: "x/y").json

    /// A blob that is not found in an array, at the root, or beside a table of attachments.
    @Test func `blobs in properties are attachments with the paths as names`() throws {
        let body = JSONText(
            canonical: [
                "a": Self.blob, "list": [1, ["b/c": Self.blob]], "_attachments": ["x": Self.blob],
                "odd": ["@type": "blob", "digest": "no"],
            ]
        )
        let all = BlobAttachments.all(in: body, generation: 4)
        #expect(Set(all.map(\.name)) == ["blob_/a", "blob_/list/1/b~1c"])
        #expect(all.allSatisfy { $0.digest == Self.digest })
        #expect(all.allSatisfy { $0.length == 3 })
        #expect(all.allSatisfy { $0.contentType == "x/y" })
        #expect(all.allSatisfy { $0.position == 4 })
        #expect(BlobAttachments.blob("blob_/list/1/b~1c", in: body)?.digest == Self.digest)
        for name in ["blob_/b", "blob_", "/a", "blob_/list/1", "blob_/_attachments/x"] {
            #expect(BlobAttachments.blob(name, in: body) == nil, "\(name)")
        }
        // An attachment that names another content is no repetition. Of an unknown MD5, peers are taken at their word.
        func isRepeated(_ name: String, _ digest: String?) -> Bool {
            BlobAttachments.repeated(name, digest, in: body) { _ in nil } != nil
        }
        #expect(isRepeated("blob_/a", nil))
        #expect(isRepeated("blob_/a", Self.digest.text))
        #expect(isRepeated("blob_/a", "md5-x"))
        #expect(!isRepeated("blob_/a", Self.other.text))
        #expect(!isRepeated("blob_/b", nil))
        #expect(BlobAttachments.all(in: JSONText(canonical: ["a": 1]), generation: 1).isEmpty)
    }

    /// An attachment that goes to a place without a blob, or that stays in the table.
    @Test func `an attachment in a blob's place replaces its content, and any other stays`() throws {
        let new: JSONValue = ["digest": .string(Self.other.text), "length": 9, "revpos": 2]
        func absorbed(_ name: String) -> JSONValue {
            BlobAttachments.absorbed(
                ["a": Self.blob, "l": [0, Self.blob], "p": 1, "_attachments": .object([name: new])]
            )
        }
        for name in ["blob_/a", "blob_/l/1"] {
            let body = absorbed(name)
            #expect(body["_attachments"] == nil, "\(name)")
            let blob = name == "blob_/a" ? body["a"] : body["l"]?[1]
            #expect(BlobReference(blob)?.digest == Self.other, "\(name)")
            #expect(BlobReference(blob)?.length == 9, "\(name)")
            #expect(blob?["content_type"] == nil, "\(name)")
        }
        for name in [
            "a", "blob_", "blob_a", "blob_/b", "blob_/l/0", "blob_/l/2", "blob_/l/x", "blob_/p",
            "blob_/a/digest",
        ] {
            let body = absorbed(name)
            #expect(body["_attachments"]?[name] == new, "\(name)")
            #expect(body["a"] == Self.blob, "\(name)")
            #expect(body["l"] == [0, Self.blob], "\(name)")
        }
        // The same content changes nothing but the table.
        let same = BlobAttachments.absorbed(
            ["a": Self.blob, "_attachments": ["blob_/a": ["digest": .string(Self.digest.text)], "b": new]]
        )
        #expect(same == ["a": Self.blob, "_attachments": ["b": new]])
    }

    // MARK: Names

    @Test(
        arguments: [
            ("plain name", "plain name"), ("=?utf-8?b?w7w=?=", "ü"), ("=?UTF-8?Q?=C3=BC_=5F?=", "ü _"),
            ("=?utf-8?b?w7w=?=\t =?utf-8?q?x?=", "üx"), ("=?utf-8?b?w7w=?= x", nil), ("=?latin1?q?x?=", nil),
            ("=?utf-8?b?!?=", nil), ("=?utf-8?q?=C3?=", nil), ("=?utf-8?x?a?=", nil), ("=?utf-8?q?=C?=", nil),
            ("=??=", nil), ("=?=", nil), ("=?utf-8?q?=C3=?=", nil), ("=?utf-8?b??=", ""), ("=?utf-8?q", nil),
            ("=?utf-8?q?a=?= =?utf-8?q?41?=", nil), ("a =?utf-8?q?x?=", "a =?utf-8?q?x?="),
        ] as [(String, String?)]
    ) func `names of attachments are decoded`(_ text: String, _ name: String?) {
        #expect(EncodedWords.decode(text) == name)
    }
}
