import Logging
package import LoveseatModel
package import LoveseatReplication
package import LoveseatStorage
private import Synchronization

/// Runs the app's conflict resolvers: a limited number at a time, each with a deadline, at most 30 attempts per document, and not after
/// four rounds of verdicts that contradicted each other.
package final class ConflictWorker: Sendable {
    /// More resolutions of one document over one connection mean that the peers' resolvers do not agree.
    private static let maximumResolutions = 30
    private static let atOnce = 8

    private let store: DocumentStore
    private let config: ReplicatorConfiguration
    private let runtime: ReplicationRuntime
    private let limit: ConcurrencyLimit
    private let counts = Mutex<[Key: Int]>([:])

    private struct Key: Hashable {
        let collection: Int
        let documentID: String
    }

    package init(store: DocumentStore, config: ReplicatorConfiguration, runtime: ReplicationRuntime) {
        self.store = store
        self.config = config
        self.runtime = runtime
        limit = ConcurrencyLimit(Self.atOnce, runtime)
    }

    /// Resolves a document's conflicts; returns the error if that fails. If it is cancelled before it began, the conflict remains.
    package func resolve(_ notice: ConflictNotice) async -> LoveseatError? {
        let outcome: LoveseatError?? = await limit.run { [self] in
            do {
                try await attempt(notice)
                return nil
            } catch { return LoveseatError(storage: error) }
        }
        guard let outcome else {
            return LoveseatError(
                .conflict,
                "the conflict waits for the next replication: this one was stopped"
            )
        }
        return outcome
    }

    private func attempt(_ notice: ConflictNotice) async throws {
        let key = Key(collection: notice.collection, documentID: notice.documentID)
        let entry = config.collections[notice.collection]
        var resolution = ConflictResolution(
            store: store,
            collection: entry.collection.handle,
            documentID: notice.documentID,
            peer: notice.peer
        )
        resolution.pulled = notice.pulled
        guard let resolver = entry.conflictResolver, !(resolver is DefaultResolver) else {
            return try await resolution.run(nil)
        }
        try await resolution.run { [self] conflict in
            let count = counts.withLock { counts in
                counts[key, default: 0] += 1
                return counts[key, default: 0]
            }
            guard count <= Self.maximumResolutions, !conflict.isGivenUp else {
                throw LoveseatError(
                    .conflict,
                    "the conflict in \"\(conflict.documentID)\" came back \(max(conflict.rounds, count - 1)) times: use the same resolver on every peer, and let it depend on the conflict alone"
                )
            }
            return try await ask(resolver, conflict, in: entry.collection)
        }
    }

    private func ask(
        _ resolver: any ConflictResolverProtocol,
        _ conflict: ConflictCase,
        in collection: Collection
    ) async throws -> Resolution {
        let configured = config.conflictResolverTimeout
        let seconds = configured == 0 ? ReplicatorConfiguration.defaultConflictResolverTimeout : configured
        let answer: Document?
        do {
            answer = try await Deadline.run(seconds: seconds, runtime) {
                try await resolver.resolve(conflict: Conflict(conflict))
            }
        } catch is Deadline.Passed {
            throw LoveseatError(
                .conflict,
                "the resolver of \"\(conflict.documentID)\" did not answer within \(seconds) seconds"
            )
        } catch let refusal as ResolverRefusal { throw refusal.error } catch {
            throw LoveseatError(.conflict, "the resolver of \"\(conflict.documentID)\" threw: \(error)")
        }
        guard answer == nil || answer?.id.isExactly(conflict.documentID) == true else {
            throw LoveseatError(
                .conflict,
                "the resolver of \"\(conflict.documentID)\" returned another document, \"\(answer?.id ?? "")\""
            )
        }
        guard answer?.origin == nil || answer?.origin == DocumentOrigin(collection) else {
            throw LoveseatError(
                .conflict,
                "the resolver of \"\(conflict.documentID)\" returned a document of another collection or database: return one of the two versions, or a new document"
            )
        }
        let resolution = try conflict.resolution(answer)
        LogDomain.replicator.log(
            .debug,
            "conflict in \"\(conflict.documentID)\" between \(conflict.local.revision) here and \(conflict.remote.revision): \(resolution.name)"
        )
        if case .merged(let body) = resolution,
            let missing = BlobReference.all(in: body).first(where: { !store.blobs.contains($0.digest) })
        {
            throw LoveseatError(
                .unexpectedError,
                "the resolver of \"\(conflict.documentID)\" returned a blob that is not in this database: \(missing.digest)"
            )
        }
        return resolution
    }
}

/// Work with a deadline.
enum Deadline {
    struct Passed: Error {}

    /// Runs work that may ignore cancellation: after the deadline it is abandoned.
    static func run<T: Sendable>(
        seconds: Double,
        _ runtime: ReplicationRuntime,
        _ work: @escaping @Sendable () async throws -> T
    ) async throws -> T {
        let outcome = Outcome<T>()
        let task = runtime.task {
            do { outcome.finish(.success(try await work())) } catch { outcome.finish(.failure(error)) }
        }
        let timer = runtime.task(after: .seconds(seconds)) {
            outcome.finish(.failure(Passed()))
            task.cancel()
        }
        defer { timer.cancel() }
        return try await outcome.value
    }

    private final class Outcome<T: Sendable>: Sendable {
        private struct State {
            var result: Result<T, any Error>?
            var waiter: CheckedContinuation<T, any Error>?
        }

        private let state = Mutex(State())

        func finish(_ result: Result<T, any Error>) {
            let waiter = state.withLock { state -> CheckedContinuation<T, any Error>? in
                guard state.result == nil else { return nil }
                state.result = result
                defer { state.waiter = nil }
                return state.waiter
            }
            waiter?.resume(with: result)
        }

        var value: T {
            get async throws {
                try await withCheckedThrowingContinuation { continuation in
                    let result = state.withLock { state in
                        if state.result == nil { state.waiter = continuation }
                        return state.result
                    }
                    if let result { continuation.resume(with: result) }
                }
            }
        }
    }
}

extension Resolution {
    fileprivate var name: String {
        switch self {
        case .local: "kept the local version"
        case .remote: "kept the peer's version"
        case .merged: "merged"
        case .deleted: "deleted"
        }
    }
}
