import Crypto
import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatIdentity
import LoveseatModel
import LoveseatNetwork
import LoveseatStorage
import LoveseatTesting
import Testing

/// The replicator over CouchDB's wire, against our own listener.
struct ReplicatorTests {
    private let active: ActiveSide

    init() throws { active = try ActiveSide() }

    @Test func `a pull brings documents, conflicts, deletions and their histories`() async throws {
        let remote = try await PassiveSide()
        try await remote.send("PUT", "/remote/a", #"{"n":1}"#)
        for (id, start, ids, more) in [
            ("b", 2, #""b2","b1""#, ""), ("b", 2, #""c2","b1""#, ""),
            ("c", 3, #""x3","x2","x1""#, #""_deleted":true,"#),
        ] {
            let document =
                #"{\#(more)"_revisions":{"start":\#(start),"ids":[\#(ids)]},"v":1}"#
            let answer = try await remote.send("PUT", "/remote/\(id)?new_edits=false", document)
            #expect(answer.status < 300, "\(answer.text)")
        }
        let pass = try await active.replicate(remote.url(), .pull)
        #expect(pass.status.error == nil)
        #expect(pass.pulled == ["a", "b", "b", "c"])
        #expect(try active.leaves("b") == ["2-c2", "2-b2"])
        #expect(try active.leaves("c") == ["3-x3 deleted"])
        #expect(try active.history("c") == ["3-x3", "2-x2", "1-x1"])
        #expect(pass.status.progress.completed == pass.status.progress.total)
        await remote.listener.stop()
    }

    @Test func `a push sends all leaves, and a second one sends nothing`() async throws {
        let remote = try await PassiveSide()
        try active.save("a", ["n": 1])
        try active.save("a", ["n": 2])
        let collection = try active.collection
        try collection.openStore().write { transaction in
            for revision in ["2-b2", "2-c2"] {
                _ = try transaction.insertBranch(
                    [try #require(RevisionID(revision)), try #require(RevisionID("1-b1"))],
                    of: "b",
                    in: collection.handle,
                    body: JSONText(canonical: ["r": .string(revision)]),
                    isDeleted: false
                )
            }
        }
        let configuration = try active.configuration(CouchDBEndpoint(url: remote.url()), .push)
        #expect(try Replicator(configuration).pendingDocumentIds(collection: collection) == ["a", "b"])
        let pass = try await active.replicate(configuration)
        #expect(pass.status.error == nil)
        #expect(pass.pushed == ["a", "b"])
        #expect(try Replicator(configuration).pendingDocumentIds(collection: collection) == [])
        let answer = try await remote.send("GET", "/remote/b?conflicts=true")
        #expect(answer.text.contains(#""_rev":"2-c2""#))
        #expect(answer.text.contains(#""_conflicts":["2-b2"]"#))
        let revisions = try await remote.send("GET", "/remote/a?revs=true")
        #expect(revisions.text.contains(#""start":2"#))
        let again = try await active.replicate(configuration)
        #expect(again.pushed == [])
        let reset = try await active.replicate(configuration, reset: true)
        #expect(reset.pushed == [])
        #expect(reset.status.error == nil)
        await remote.listener.stop()
    }

    @Test func `what was pulled is not pending, and an edit of it is`() async throws {
        let remote = try await PassiveSide()
        for id in ["a", "b"] { try await remote.send("PUT", "/remote/\(id)", "{\"n\":1}") }
        let configuration = try active.configuration(CouchDBEndpoint(url: remote.url()), .pushAndPull)
        #expect(try await active.replicate(configuration).status.error == nil)
        let collection = try active.collection
        #expect(try Replicator(configuration).pendingDocumentIds(collection: collection) == [])
        var document = try #require(try collection.document(id: "b"))
        document["n"] = 2
        try collection.save(&document)
        #expect(try Replicator(configuration).pendingDocumentIds(collection: collection) == ["b"])
        await remote.listener.stop()
    }

    @Test func `attachments and blobs travel both ways`() async throws {
        let remote = try await PassiveSide()
        let large = (0..<700_000).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 7) }
        let client = try remote.client
        let saved = try await offPool {
            try client.send(
                "PUT",
                "/remote/doc/a%20b.bin",
                [("Content-Type", "image/png")],
                body: large
            )
        }
        #expect(saved.status == 201)
        try await remote.send(
            "PUT",
            "/remote/small",
            #"{"_attachments":{"t":{"content_type":"text/plain","data":"aGVsbG8="}}}"#
        )
        let pull = try await active.replicate(remote.url(), .pull)
        #expect(pull.pulled == ["doc", "small"])
        let document = try #require(try active.collection.document(id: "doc"))
        let attachment = try #require(document.attachment("a b.bin"))
        #expect(try Array(active.database.blobContent(attachment)) == large)

        // And on to another remote.
        let other = try await PassiveSide("other")
        var photo = Document(id: "photo")
        photo["photo"] = try active.database.saveBlob("a picture".utf8, contentType: "image/jpeg").json
        try active.collection.save(photo)
        let push = try await active.replicate(other.url("other"), .push)
        #expect(push.pushed == ["doc", "photo", "small"])
        let back = try other.client
        let content = try await offPool { try back.send("GET", "/other/doc/a%20b.bin") }
        #expect(content.body == large)
        let picture = try await offPool { try back.send("GET", "/other/photo/blob_%2Fphoto") }
        #expect(picture.text == "a picture")
        await remote.listener.stop()
        await other.listener.stop()
    }

    @Test func `only what changed since the last pass is transferred`() async throws {
        let remote = try await PassiveSide()
        for index in 0..<1_200 { try remote.database.defaultCollection().save(Document(id: "d\(index)")) }
        let first = try await active.replicate(remote.url(), .pushAndPull)
        #expect(first.pulled.count == 1_200)
        #expect(first.pushed.isEmpty)
        try active.save("here", ["n": 1])
        try await remote.send("PUT", "/remote/there", "{}")
        let second = try await active.replicate(remote.url(), .pushAndPull)
        #expect(second.pulled == ["there"])
        #expect(second.pushed == ["here"])
        await remote.listener.stop()
    }

    @Test func `a remote that moved is recognized by its UUID`() async throws {
        let remote = try await PassiveSide()
        try await remote.send("PUT", "/remote/a", "{}")
        let first = try await active.replicate(remote.url(), .pull)
        #expect(first.pulled == ["a"])
        await remote.listener.stop()
        try active.collection.purge(id: "a")
        var configuration = CouchDBListenerConfiguration(database: remote.database)
        configuration.disableTLS = true
        configuration.networkInterface = "127.0.0.1"
        let moved = CouchDBListener(configuration)
        try await moved.start()
        let port = try #require(moved.port)
        let url = try #require(URL(string: "http://127.0.0.1:\(port)/remote"))
        let second = try await active.replicate(url, .pull)
        #expect(second.status.error == nil)
        // The checkpoint counts, so what was purged does not come back.
        #expect(second.pulled == [])
        await moved.stop()
    }

    @Test func `document IDs, selectors and filters choose what is replicated`() async throws {
        let remote = try await PassiveSide()
        for (id, body) in [("a", #"{"t":1}"#), ("b", #"{"t":2}"#), ("c", #"{"t":2}"#)] {
            try await remote.send("PUT", "/remote/\(id)", body)
        }
        var listed = try active.configuration(CouchDBEndpoint(url: remote.url()), .pull)
        listed.collections[0].documentIDs = ["a"]
        #expect(try await active.replicate(listed).pulled == ["a"])
        var endpoint = CouchDBEndpoint(url: try remote.url())
        endpoint.selector = try JSONText(#"{"t":2}"#)
        let selected = try active.configuration(endpoint, .pushAndPull)
        #expect(try await active.replicate(selected).pulled == ["b", "c"])
        try active.save("d", ["t": 3])
        try active.save("e", ["t": 2])
        #expect(try await active.replicate(selected).pushed == ["e"])
        var filtered = try active.configuration(CouchDBEndpoint(url: remote.url()), .push)
        filtered.collections[0].pushFilter = { document, _ in document.id == "none" }
        #expect(try await active.replicate(filtered).pushed == [])
        var channels = try active.configuration(CouchDBEndpoint(url: remote.url()), .pull)
        channels.collections[0].channels = ["x"]
        #expect(try await active.replicate(channels).status.error?.code == .invalidParameter)
        await remote.listener.stop()
    }

    @Test func `a resolver ends conflicts by tombstones that are pushed`() async throws {
        let remote = try await PassiveSide()
        for rev in ["b2", "c2"] {
            try await remote.send(
                "PUT",
                "/remote/x?new_edits=false",
                #"{"_revisions":{"start":2,"ids":["\#(rev)","a1"]},"from":"\#(rev)"}"#
            )
        }
        var configuration = try active.configuration(CouchDBEndpoint(url: remote.url()), .pushAndPull)
        configuration.collections[0].conflictResolver = ConflictResolver.custom { conflict in
            conflict.localDocument?["from"]?.string == "b2"
                ? conflict.localDocument : conflict.remoteDocument
        }
        let pass = try await active.replicate(configuration)
        #expect(pass.status.error == nil)
        let document = try #require(try active.collection.document(id: "x"))
        #expect(document["from"]?.string == "b2")
        let there = try await remote.send("GET", "/remote/x?conflicts=true")
        #expect(there.text.contains(#""from":"b2""#))
        #expect(!there.text.contains("_conflicts"))
        await remote.listener.stop()
    }

    @Test func `a continuous replication carries later changes on both sides`() async throws {
        let remote = try await PassiveSide()
        var configuration = try active.configuration(CouchDBEndpoint(url: remote.url()), .pushAndPull)
        configuration.continuous = true
        let replicator = Replicator(configuration)
        replicator.start()
        for await status in replicator.statuses where status.activity == .idle { break }
        try await remote.send("PUT", "/remote/there", "{}")
        try active.save("here", [:])
        let clock = ContinuousClock()
        let deadline = clock.now + .seconds(20)
        var isThere = false
        while clock.now < deadline, !isThere {
            let answer = try await remote.send("GET", "/remote/here")
            let document = try active.collection.document(id: "there")
            isThere = answer.status == 200 && document != nil
            if !isThere { try await Task.sleep(for: .milliseconds(50)) }
        }
        #expect(isThere)
        replicator.stop()
        let status = await replicator.waitUntilStopped()
        #expect(status.error == nil)
        await remote.listener.stop()
    }

    @Test func `a missing database is created only if that is wanted`() async throws {
        let remote = try await PassiveSide { $0.allowsDatabaseCreation = true }
        try active.save("a", [:])
        let refused = try await active.replicate(remote.url("fresh"), .push)
        #expect(refused.status.error?.code == .httpNotFound)
        var endpoint = CouchDBEndpoint(url: try remote.url("fresh"))
        endpoint.createsTarget = true
        let pass = try await active.replicate(try active.configuration(endpoint, .push))
        #expect(pass.status.error == nil)
        #expect(pass.pushed == ["a"])
        await remote.listener.stop()
    }

    @Test func `a wrong password is an error, and a read-only remote can be pulled from`() async throws {
        let remote = try await PassiveSide {
            $0.readOnly = true
            $0.authenticator = ListenerPasswordAuthenticator { $0 == "ana" && $1 == "secret" }
        }
        var configuration = try active.configuration(CouchDBEndpoint(url: remote.url()), .pull)
        configuration.authenticator = BasicAuthenticator(username: "ana", password: "wrong")
        #expect(try await active.replicate(configuration).status.error?.code == .httpAuthRequired)
        configuration.authenticator = BasicAuthenticator(username: "ana", password: "secret")
        #expect(try await active.replicate(configuration).status.error == nil)
        await remote.listener.stop()
    }

    @Test func `a server is pinned by SHA-256 or SHA-1, and no other one is accepted`() async throws {
        let folder = URL(filePath: active.scratch.path).appending(path: "identities")
        let remote = try await PassiveSide {
            $0.disableTLS = false
            $0.identityStore = FileIdentityStore(folder: folder)
        }
        try remote.database.defaultCollection().save(Document(id: "a"))
        let port = try #require(remote.listener.port)
        let url = try #require(URL(string: "https://127.0.0.1:\(port)/remote"))
        let certificate = try #require(remote.listener.tlsIdentity?.certs.first)
        var configuration = try active.configuration(CouchDBEndpoint(url: url), .pull)
        #expect(try await active.replicate(configuration).status.error?.code == .tlsCertUnknownRoot)
        configuration.pinnedServerFingerprint = String(repeating: "0", count: 64)
        #expect(try await active.replicate(configuration).status.error?.code == .tlsCertUnknownRoot)
        let digest = Insecure.SHA1.hash(data: certificate.derBytes)
        configuration.pinnedServerFingerprint = digest.map { String(format: "%02X", $0) }.joined(
            separator: ":"
        )
        let pass = try await active.replicate(configuration)
        #expect(pass.status.error == nil)
        #expect(pass.pulled == ["a"])
        configuration.pinnedServerFingerprint = certificate.fingerprint
        #expect(try await active.replicate(configuration).status.error == nil)
        // A clear connection to the same port is an error and no crash.
        #expect(try await active.replicate(remote.url(), .pull).status.error != nil)
        await remote.listener.stop()
    }

    @Test func `a document goes from CouchDB's wire to Couchbase's and back unchanged`() async throws {
        let remote = try await PassiveSide()
        try await remote.send(
            "PUT",
            "/remote/x",
            #"{"n":1.5,"_attachments":{"t":{"content_type":"text/plain","data":"aGVsbG8="}}}"#
        )
        let before = try await remote.send("GET", "/remote/x?attachments=true&revs=true")
        _ = try await active.replicate(remote.url(), .pushAndPull)
        // A peer of Couchbase's protocol edits it.
        let peer = try ActiveSide("peer")
        try await active.synchronize(with: peer)
        var document = try #require(try peer.collection.document(id: "x"))
        document["m"] = 2
        try peer.collection.save(&document)
        try await active.synchronize(with: peer)
        _ = try await active.replicate(remote.url(), .pushAndPull)
        let after = try await remote.send("GET", "/remote/x?attachments=true&revs=true")
        for part in [#""n":1.5"#, #""data":"aGVsbG8=""#, #""content_type":"text/plain""#, #""revpos":1"#] {
            #expect(before.text.contains(part), "\(before.text)")
            #expect(after.text.contains(part), "\(after.text)")
        }
        #expect(after.text.contains(#""m":2"#))
        #expect(after.text.contains(#""start":2"#))
        await remote.listener.stop()
    }
}
