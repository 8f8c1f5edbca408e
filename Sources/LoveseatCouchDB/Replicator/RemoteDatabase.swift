import AsyncHTTPClient
import LoveseatCore
package import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import NIOCore
import NIOHTTP1
import Synchronization

/// One database of a remote.
package final class RemoteDatabase: Sendable {
    /// The longest answer that is held in memory, in bytes.
    static let maximumAnswer = 64 << 20

    let client: RemoteClient
    let path: String

    /// The features that a remote may lack. Each is assumed until a request shows otherwise.
    struct Abilities {
        var bulkGet = true
        var changesWithBody = true
    }

    let abilities = Mutex(Abilities())

    package init(client: RemoteClient, path: String) { (self.client, self.path) = (client, path) }

    // MARK: The database

    /// The UUID of the server; nil if it has none, or this client may not read it.
    package func serverUUID() async throws -> String? {
        do { return try await json(.server, "/", limit: 1 << 20)["uuid"]?.string } catch let failure
            as RemoteFailure
        {
            switch failure.status {
            case 401, 429: throw failure.failure(of: "the first request")
            case 403 where failure.isLockedOut: throw failure.failure(of: "the first request")
            case 500...: throw failure.failure(of: "the first request")
            default: return nil
            }
        }
    }

    /// The database's `instance_start_time`, by which a session notices that the database was recreated; nil if there is none.
    package func instance() async throws -> String? {
        try await json(.information, "the database", limit: 1 << 20)["instance_start_time"]?.string
    }

    /// Looks for the database, and creates it if it is wanted.
    ///
    /// - Returns: as ``instance()``.
    package func open(creates: Bool) async throws -> String? {
        do { return try await instance() } catch let failure as RemoteFailure {
            guard failure.status == 404, creates else { throw failure.failure(of: path) }
            do { _ = try await json(.creation, "the creation of \(path)", limit: 1 << 20) } catch let failure
                as RemoteFailure
            {
                // Somebody else was faster.
                guard failure.status == 412 else { throw failure.failure(of: "the creation of \(path)") }
            }
            do { return try await instance() } catch let failure as RemoteFailure {
                throw failure.failure(of: path)
            }
        }
    }

    // MARK: Changes

    /// Lists the changes of these documents, each as it is now; those that the remote does not list any more are left out.
    package func changes(of ids: [String]) async throws -> ChangesListing {
        let wanted = DocumentSet(ids)
        var found = ChangesListing()
        let groups = DocumentBatches.divide(ids, count: 100, bytes: 2_000) { $0.utf8.count + 4 }
        for group in groups {
            do { try await list(.documents(group), of: wanted, &found) } catch let failure as RemoteFailure {
                guard failure.lacksEndpoint else { throw failure.failure(of: "_changes") }
                // A remote that cannot be asked for documents.
                found = ChangesListing()
                try await list(.all, of: wanted, &found)
                return found
            }
        }
        return found
    }

    private func list(
        _ selection: ChangesQuery.Selection,
        of wanted: DocumentSet,
        _ found: inout ChangesListing
    ) async throws {
        var query = ChangesQuery(selection, since: nil, limit: ChangesQuery.pageSize)
        var repeated = RepeatedPages()
        while true {
            let page = try await changes(query)
            try repeated.note(page.changes, page.unreadable)
            let matching = page.changes.filter { wanted.contains($0.documentID) }
            found.changes += matching
            if !page.unreadable.isEmpty { found.isReadable = false }
            let next = page.next
            // A remote that ignores the list names all documents.
            let mayGoOn = matching.count < page.changes.count || page.changes.count >= query.limit
            if next == nil || next == query.since || page.isEmpty || (page.isWhole && !mayGoOn) { return }
            query.since = next
        }
    }

    /// Whether the remote answers to this client at all, after it has refused one request.
    package func answers() async -> Bool {
        // Whichever error this is, the caller reports the refusal that it has.
        let page = try? await changes(ChangesQuery(.all, since: nil, limit: 1))
        return page != nil
    }

    /// Reads a part of the feed. A feed that waits, and at which nothing happens, returns no changes.
    package func changes(_ query: ChangesQuery) async throws -> ChangesPage {
        var query = query
        query.usesBody = abilities.withLock { $0.changesWithBody }
        query.asksRevocations = query.asksRevocations && client.isGateway
        do { return try await readChanges(query) } catch let failure as RemoteFailure
            where query.usesBody && [404, 405].contains(failure.status) && query.request?.method == .post
        {
            abilities.withLock { $0.changesWithBody = false }
            query.usesBody = false
            return try await readChanges(query)
        }
    }

    private func readChanges(_ query: ChangesQuery) async throws -> ChangesPage {
        guard let request = query.request else {
            throw LoveseatError(.unsupported, "the peer does not support selectors: use a filter of the app")
        }
        do {
            return try await client.retrying {
                let response = try await self.client.send(request, to: self.path)
                guard response.status == 200 else { throw await response.failure() }
                return try await Self.page(of: response, atMost: 4 * query.limit + 1_000)
            }
        } catch let error as LoveseatError where error.code == .timeout && query.heartbeat != nil {
            // TouchDB sends no heartbeats.
            return ChangesPage(end: ChangesParser.End(lastSequence: query.since, pending: nil))
        }
    }

    /// Reads an answer of `_changes`. `maximum`: how many rows are read of a peer that ignores the limit.
    private static func page(of response: RemoteResponse, atMost maximum: Int) async throws -> ChangesPage {
        var parser = ChangesParser()
        var changes: [RemoteChange] = []
        do {
            for try await part in response.body {
                changes += try parser.receive(Array(part.readableBytesView))
                if parser.isFull || changes.count > maximum { break }
            }
        } catch { throw LoveseatError(http: error) }
        // A peer or a proxy may cut the answer.
        if changes.count <= maximum, let end = try? parser.finish() {
            return ChangesPage(changes: changes, unreadable: parser.unreadable, end: end)
        }
        // All rows that came are whole.
        guard let last = changes.last else { return ChangesPage(end: try parser.finish()) }
        return ChangesPage(
            changes: changes,
            unreadable: parser.unreadable,
            end: ChangesParser.End(lastSequence: last.sequence, pending: nil),
            isWhole: false
        )
    }

    // MARK: Reading

    var canGetBulk: Bool { abilities.withLock { $0.bulkGet } }

    /// Fetches revisions without their attachments; nil if the remote cannot do that.
    package func bulkGet(_ leaves: [DocumentLeaf]) async throws -> [BulkGetItem]? {
        guard canGetBulk, !leaves.isEmpty else { return canGetBulk ? [] : nil }
        do {
            let answer = try await json(
                .bulkGet(leaves),
                "_bulk_get",
                limit: Self.maximumAnswer,
                tries: false
            )
            if let items = BulkGetItem.read(answer) { return items }
        } catch let failure as RemoteFailure {
            guard failure.lacksEndpoint else { throw failure }
        } catch is AnswerTooLarge { return try await bulkGetHalves(leaves) } catch let error
            as UnreadableAnswer
            where error.isObject
        {
            // One damaged document makes the whole answer unreadable: the others come without it.
            return try await bulkGetHalves(leaves)
        } catch is UnreadableAnswer {}
        abilities.withLock { $0.bulkGet = false }
        return nil
    }

    private func bulkGetHalves(_ leaves: [DocumentLeaf]) async throws -> [BulkGetItem]? {
        guard let (first, second) = DocumentBatches.halves(leaves) else {
            return leaves.map { BulkGetItem(documentID: $0.documentID, error: "unreadable") }
        }
        guard let one = try await bulkGet(first), let other = try await bulkGet(second) else { return nil }
        return one + other
    }

    /// Fetches a revision with those attachments that are not here; nil if the remote does not have it any more.
    ///
    /// - Throws: ``CouchDBError`` for what is not a document.
    func revision(_ leaf: DocumentLeaf, known: [RevisionID], blobs: BlobFiles) async throws
        -> FetchedRevision?
    {
        let request = RemoteRequest.revision(leaf, known: known)
        return try await client.retrying {
            let response = try await self.client.send(request, to: self.path)
            guard response.status == 200 else {
                let failure = await response.failure()
                if failure.status == 404 { return nil }
                throw failure
            }
            let pins = BlobPins(blobs)
            let type = response.headers.first(name: "Content-Type").flatMap { MediaType($0) }
            guard let type, type.matches("multipart", "related") else {
                let bytes = try await response.bytes(limit: Self.maximumAnswer)
                let document = try IncomingDocument(try RequestJSON.parse(bytes))
                try Self.check(document, of: leaf)
                let prepared = try DocumentSaving.prepare(document, id: leaf.documentID, pins: pins)
                return FetchedRevision(document: prepared, blobs: pins)
            }
            guard let boundary = type.boundary else { throw CouchDBError.badRequest("no boundary") }
            let receiver = PartsReceiver(
                boundary: boundary,
                pins: pins,
                limit: Self.maximumAnswer
            ) { text in
                let document = try IncomingDocument(try RequestJSON.parse(text))
                try Self.check(document, of: leaf)
                return document
            }
            do {
                for try await part in response.body { try receiver.receive(Array(part.readableBytesView)) }
            } catch let error as CouchDBError { throw error } catch let error as MultipartError {
                throw CouchDBError.badRequest("the parts are malformed: \(error)")
            } catch { throw LoveseatError(http: error) }
            return FetchedRevision(document: try receiver.finish(id: leaf.documentID), blobs: pins)
        }
    }

    /// A gateway decodes some paths twice, and then sends another document.
    private static func check(_ document: IncomingDocument, of leaf: DocumentLeaf) throws(CouchDBError) {
        // A peer may leave out the ID, which the request names.
        guard let id = document.id, !id.isExactly(leaf.documentID) else { return }
        throw .badRequest("it is the document \"\(id)\"")
    }

    // MARK: Requests

    /// `tries`: whether a failure of the server may pass; `accepts`: statuses that are answers.
    func json(
        _ request: RemoteRequest,
        _ what: String,
        limit: Int,
        tries: Bool = true,
        accepts: Set<Int> = []
    ) async throws -> JSONElement {
        func once() async throws -> JSONElement {
            let response = try await client.send(request, to: path)
            guard (200..<300).contains(response.status) || accepts.contains(response.status) else {
                throw await response.failure()
            }
            let bytes = try await response.bytes(limit: limit)
            do throws(JSONError) { return try JSONElement(scanning: bytes, limits: .envelope) } catch {
                throw UnreadableAnswer(what: what, error: error, bytes: bytes)
            }
        }
        do {
            return try await client.retrying {
                do { return try await once() } catch let failure as RemoteFailure where !tries {
                    // A server that fails at this may do so each time.
                    guard failure.status == 500, !failure.lacksSpace else { throw failure }
                    throw RemoteFailure(status: 501, body: [])
                }
            }
        } catch let error as AnswerTooLarge where tries { throw error.failure } catch let error
            as UnreadableAnswer where tries
        { throw error.failure }
    }
}
