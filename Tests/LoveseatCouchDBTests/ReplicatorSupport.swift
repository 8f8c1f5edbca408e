import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatNetwork
import LoveseatPlatform
import LoveseatStorage
import LoveseatTesting
import Testing

/// A database here that replicates with something over CouchDB's wire.
struct ActiveSide {
    let scratch: Scratch
    let database: Database

    init(_ name: String = "local") throws {
        scratch = try Scratch()
        database = try scratch.database(name)
    }

    var collection: LoveseatCore.Collection {
        get throws { try database.defaultCollection() }
    }

    func configuration(_ endpoint: CouchDBEndpoint, _ type: ReplicatorType) throws -> ReplicatorConfiguration
    {
        var configuration = ReplicatorConfiguration(collections: [try collection], target: endpoint)
        configuration.replicatorType = type
        configuration.maxAttempts = 1
        return configuration
    }

    /// Replicates in one pass, and returns the last status and the documents that were replicated.
    @discardableResult
    func replicate(_ configuration: ReplicatorConfiguration, reset: Bool = false) async throws -> Pass {
        let replicator = Replicator(configuration)
        let events = replicator.documentReplications
        let counting = Task {
            var documents: [(document: ReplicatedDocument, isPush: Bool)] = []
            for await batch in events { documents += batch.documents.map { ($0, batch.isPush) } }
            return documents
        }
        replicator.start(reset: reset)
        let status = await replicator.waitUntilStopped()
        return Pass(status: status, documents: await counting.value)
    }

    @discardableResult
    func replicate(_ url: URL, _ type: ReplicatorType) async throws -> Pass {
        try await replicate(try configuration(CouchDBEndpoint(url: url), type))
    }

    /// Synchronizes over Couchbase's protocol.
    func synchronize(with other: ActiveSide) async throws {
        var configuration = ReplicatorConfiguration(
            collections: [try collection],
            target: DatabaseEndpoint(database: other.database)
        )
        configuration.replicatorType = .pushAndPull
        let replicator = Replicator(configuration)
        replicator.start()
        #expect(await replicator.waitUntilStopped().error == nil)
    }

    struct Pass {
        let status: Replicator.Status
        let documents: [(document: ReplicatedDocument, isPush: Bool)]

        var pushed: [String] {
            documents.filter { $0.isPush && $0.document.error == nil }.map(\.document.id).sorted()
        }
        var pulled: [String] {
            documents.filter { !$0.isPush && $0.document.error == nil }.map(\.document.id).sorted()
        }
        var failed: [String: LoveseatError] {
            documents.reduce(into: [:]) { $0[$1.document.id] = $1.document.error ?? $0[$1.document.id] }
        }
    }

    /// The leaves of a document, the winner first. `closing`: also the tombstones with which losing leaves are shown.
    func leaves(_ id: String, closing: Bool = true) throws -> [String] {
        let collection = try collection
        let record = try collection.openStore().readRows { try $0.record(id, in: collection.handle) }
        guard let record else { return [] }
        return try DocumentBranches(of: record).leaves.filter { leaf in
            closing || leaf.history.count < 2
                || leaf.id != BodyDigest.closingTombstone(over: leaf.history[1])
        }.map { $0.id.text + ($0.isDeleted ? " deleted" : "") }
    }

    /// What the leaves of a document say, by their IDs.
    func contents(_ id: String) throws -> [String: String] {
        let collection = try collection
        let record = try collection.openStore().readRows { try $0.record(id, in: collection.handle) }
        guard let record else { return [:] }
        return try DocumentBranches(of: record).leaves.reduce(into: [:]) { contents, leaf in
            guard let body = leaf.body else { return }
            contents[leaf.id.text] = JSONText(canonical: JSONElement(body).value).description
        }
    }

    /// The revisions of a document that are here, as ``leaves(_:)`` names them, and those that are not shown to peers (decision 0009).
    func known(_ id: String) throws -> Set<String> {
        let collection = try collection
        let store = try collection.openStore()
        guard let record = try store.readRows({ try $0.record(id, in: collection.handle) }) else { return [] }
        let branches = try DocumentBranches(of: store.whole(record, in: collection.handle))
        let shown = branches.leaves.flatMap { $0.history.map(\.text) }
        let all = try shown + record.tree().nodes.keys.map(\.text)
        return Set(all + all.map { $0 + " deleted" })
    }

    /// All that is known of a document.
    func tree(_ id: String) throws -> String {
        let collection = try collection
        let record = try collection.openStore().readRows { try $0.record(id, in: collection.handle) }
        guard let record else { return "" }
        return try record.tree().description
    }

    func history(_ id: String) throws -> [String] {
        let collection = try collection
        let record = try collection.openStore().readRows { try $0.record(id, in: collection.handle) }
        let store = try collection.openStore()
        return try record.map {
            try DocumentBranches(of: store.whole($0, in: collection.handle)).winner.history.map(\.text)
        } ?? []
    }

    func save(_ id: String, _ json: JSONValue) throws {
        try collection.save(try Document(id: id, json: JSONText(canonical: json).bytes))
    }
}

/// A listener of this package over a database of its own.
final class PassiveSide: Sendable {
    let scratch: Scratch
    let database: Database
    let listener: CouchDBListener

    init(
        _ name: String = "remote",
        change: (inout CouchDBListenerConfiguration) -> Void = { _ in }
    ) async throws {
        scratch = try Scratch()
        database = try scratch.database(name)
        var configuration = CouchDBListenerConfiguration(database: database)
        configuration.disableTLS = true
        configuration.networkInterface = "127.0.0.1"
        change(&configuration)
        listener = CouchDBListener(configuration)
        try await listener.start()
    }

    var client: RawClient {
        get throws { RawClient(port: try #require(listener.port)) }
    }

    func url(_ name: String = "remote") throws -> URL {
        let port = try #require(listener.port)
        return try #require(URL(string: "http://127.0.0.1:\(port)/\(name)"))
    }

    /// Sends a request to the listener, as other peers do.
    @discardableResult
    func send(_ method: String, _ path: String, _ body: String? = nil) async throws -> RawClient.Answer {
        let client = try client
        return try await offPool {
            try client.send(
                method,
                path,
                [("Accept", "application/json")]
                    + (body == nil ? [] : [("Content-Type", "application/json")]),
                body: body.map { Array($0.utf8) }
            )
        }
    }
}

/// The fake CouchDB of Tests/Fixtures, as a process.
final class FakeCouch: Sendable {
    let port: UInt16
    private let process: Process

    private static let script = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent()
        .appending(path: "Fixtures/couchdb/fakecouch/fakecouch.py")

    /// Says which port it listens on. One that is chosen here might be taken by another listener of these tests before the program has it.
    private static let start = """
        import runpy, socket, socketserver, sys
        own = socket.socket()
        own.bind(("127.0.0.1", 0))
        port = own.getsockname()[1]
        def bind(server):
            server.socket.close()
            server.socket, server.server_address = own, own.getsockname()
        def activate(server):
            own.listen(128)
            print(port, flush=True)
        socketserver.TCPServer.server_bind = bind
        socketserver.TCPServer.server_activate = activate
        sys.argv = [sys.argv[1], str(port)] + sys.argv[2:]
        runpy.run_path(sys.argv[0], run_name="__main__")
        """

    init(_ options: [String] = []) async throws {
        let (process, output) = (Process(), Pipe())
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["python3", "-c", Self.start, Self.script.path] + options
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try Lifeline.run(process)
        self.process = process
        port = try await offPool {
            var said = ""
            while true {
                let piece = output.fileHandleForReading.availableData
                guard !piece.isEmpty else { throw NoAnswer() }
                said += String(decoding: piece, as: UTF8.self)
                guard said.last == "\n" else { continue }
                for line in said.split(separator: "\n") { if let port = UInt16(line) { return port } }
            }
        }
    }

    // A child inherits blocked signals, so a polite one might never arrive.
    deinit { kill(process.processIdentifier, SIGKILL) }

    func url(_ name: String = "db") throws -> URL {
        try #require(URL(string: "http://127.0.0.1:\(port)/\(name)"))
    }

    @discardableResult
    func send(
        _ method: String,
        _ path: String,
        _ body: String? = nil,
        headers: [(String, String)] = []
    ) async throws -> RawClient.Answer {
        let client = RawClient(port: port)
        // A fake that fails now and then is asked again.
        for _ in 0..<10 {
            let answer = try await offPool {
                try client.send(
                    method,
                    path,
                    (body == nil ? [] : [("Content-Type", "application/json")]) + headers,
                    body: body.map { Array($0.utf8) }
                )
            }
            if answer.status != 503 { return answer }
        }
        throw NoAnswer()
    }
}
