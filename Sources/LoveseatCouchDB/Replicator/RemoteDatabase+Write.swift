package import LoveseatCouchDBReplication
package import LoveseatModel
import LoveseatReplication
import Synchronization

/// Documents that are pushed (protocol/couchdb.md §3.7, §4.5).
extension RemoteDatabase {
    /// Asks which of these leaves the remote lacks. Documents of which it lacks nothing are left out.
    package func differences(_ leaves: [(id: String, revisions: [RevisionID])]) async throws
        -> DocumentMap<Result<MissingRevisions, LoveseatError>>
    {
        guard !leaves.isEmpty else { return [:] }
        do {
            let answer = try await json(.differences(leaves), "_revs_diff", limit: Self.maximumAnswer)
            return try MissingRevisions.read(answer, about: leaves)
        } catch let failure as RemoteFailure { throw failure.failure(of: "_revs_diff") }
    }

    /// Writes documents without the content of attachments; returns those that were refused. `ids`: those of the documents.
    ///
    /// A failure that may be that of one of several documents is not tried again.
    ///
    /// - Throws: ``RemoteFailure`` if the batch as a whole was refused, perhaps for one of them.
    package func write(_ documents: [[UInt8]], of ids: DocumentSet) async throws -> [RefusedDocument] {
        let isAlone = documents.count == 1
        do {
            let answer = try await json(
                .bulkDocuments(documents),
                "_bulk_docs",
                limit: Self.maximumAnswer,
                tries: isAlone,
                accepts: [417]
            )
            return try RefusedDocument.read(answer, of: ids)
        } catch let error as UnreadableAnswer { throw error.failure } catch let error as AnswerTooLarge {
            throw error.failure
        }
    }

    /// Writes one document with the content of its attachments.
    ///
    /// - Throws: ``RemoteFailure``.
    func write(_ id: String, contentType: String, _ upload: Upload) async throws {
        try await client.retrying {
            let request = RemoteRequest.document(id, contentType: contentType)
            let response = try await self.client.send(request, to: self.path, upload)
            guard (200..<300).contains(response.status) else { throw await response.failure() }
            _ = try await response.bytes(limit: 1 << 20)
        }
    }

    /// Asks whether the remote takes documents from this client at all, by sending none.
    ///
    /// - Returns: Why it refuses all of them, such as a listener that is read-only; nil if it does not say so.
    package func refusalOfWrites() async throws -> RemoteFailure? {
        do { _ = try await json(.bulkDocuments([]), "_bulk_docs", limit: Self.maximumAnswer) } catch let
            failure as RemoteFailure where failure.status == 403
        {
            return failure
        } catch {
            // Any other failure is not about documents.
            try Task.checkCancellation()
        }
        return nil
    }
}
