import LoveseatCore
package import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// Sends the requests of machines. A failure that the remote reports is an answer; any other failure ends the session.
extension RemoteDatabase {
    /// Sends a request about the checkpoint with this ID.
    package func answer(_ request: CheckpointMachine.Request, _ id: String) async throws
        -> CheckpointMachine.Answer
    {
        do {
            switch request {
            case .copy: return .copy(try await json(.checkpoint(id), "_local", limit: 1 << 20))
            case .instance: return .instance(try await instance())
            case .save(let body, let revision):
                let request = RemoteRequest.saveCheckpoint(id, body, replacing: revision)
                return .saved(revision: try await json(request, "_local", limit: 1 << 20)["rev"]?.string)
            }
        } catch let failure as RemoteFailure {
            return request == .copy && failure.status == 404 ? .copy(nil) : .refused(failure)
        }
    }

    // MARK: Pushing

    func answer(_ request: PushMachine.Request, _ blobs: BlobFiles) async throws -> PushMachine.Answer {
        do {
            switch request {
            case .differences(let leaves): return .differences(try await differences(leaves))
            case .bulk(let leaves):
                let ids = DocumentSet(leaves.map(\.documentID))
                return .written(try await write(leaves.map(\.text.bytes), of: ids))
            case .parts(let leaf):
                let layout = try MultipartReply.related(leaf.text)
                let upload = Upload(layout, blobs: blobs)
                try await write(leaf.documentID, contentType: layout.contentType, upload)
                return .written([])
            case .inline(let leaf, let text):
                let upload = Upload(text, blobs: blobs)
                try await write(leaf.documentID, contentType: "application/json", upload)
                return .written([])
            case .permission: return .permission(try await refusalOfWrites())
            case .presence: return .presence(await answers())
            }
        } catch let failure as RemoteFailure {
            return .refused(failure)
        } catch let error as LoveseatError where [.notFound, .corruptData].contains(error.code) {
            // A blob is not here, or is damaged. No other request reads one.
            return .unreadable(error)
        }
    }

    // MARK: Pulling

    func answer(_ request: PullMachine.Request, _ blobs: BlobFiles, _ runtime: ReplicationRuntime)
        async throws -> PullMachine.Answer
    {
        do {
            switch request {
            case .changes(let query, let delay):
                try Task.checkCancellation()
                return try await changes(query, within: delay, runtime)
            case .listing(let ids): return .listing(try await changes(of: ids))
            case .pause(let delay):
                try await runtime.clock.sleep(for: delay)
                return .timeIsUp
            case .bulk(let wanted): return try await fetch(wanted, blobs)
            case .single(let wanted, _):
                return .single(try await revision(wanted.leaf, known: wanted.known, blobs: blobs))
            case .presence: return .presence(await answers())
            }
        } catch let failure as RemoteFailure { return .refused(failure) } catch let error as CouchDBError {
            return .damaged(LoveseatError(.remoteError, "the peer sent it damaged: \(error.reason)"))
        } catch let error as MultipartError {
            return .damaged(LoveseatError(.remoteError, "the peer sent it damaged: \(error)"))
        } catch let error as AnswerTooLarge { return .damaged(error.failure) }
    }

    private func changes(_ query: ChangesQuery, within delay: Duration?, _ runtime: ReplicationRuntime)
        async throws -> PullMachine.Answer
    {
        let begin = runtime.uptime()
        guard let delay else { return .changes(try await changes(query), after: runtime.uptime() - begin) }
        return try await withThrowingTaskGroup(of: PullMachine.Answer.self) { group in
            group.addTask { .changes(try await self.changes(query), after: runtime.uptime() - begin) }
            group.addTask {
                try await runtime.clock.sleep(for: delay)
                return .timeIsUp
            }
            defer { group.cancelAll() }
            return try await group.next() ?? .timeIsUp
        }
    }

    /// Fetches revisions at once, as far as they have no attachments.
    private func fetch(_ wanted: [WantedLeaf], _ blobs: BlobFiles) async throws -> PullMachine.Answer {
        guard let items = try await bulkGet(wanted.map(\.leaf)), items.count == wanted.count else {
            return .bulk([], singles: wanted)
        }
        var (fetched, singles): ([FetchedRevision], [WantedLeaf]) = ([], [])
        for (item, wanted) in zip(items, wanted) {
            do {
                guard let documents = wanted.documents(in: item) else { throw CouchDBError.missing }
                fetched += try documents.map { document in
                    let pins = BlobPins(blobs)
                    let id = wanted.leaf.documentID
                    return FetchedRevision(
                        document: try DocumentSaving.prepare(document, id: id, pins: pins),
                        blobs: pins
                    )
                }
            } catch { singles.append(wanted) }
        }
        return .bulk(fetched, singles: singles)
    }
}
