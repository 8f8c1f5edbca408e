import Logging
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import Synchronization

/// How an answer names the contents of attachments: by their MD5, as CouchDB does, or by the SHA-1 by which they are stored, for a client that
/// asks for that.
final class ContentNames: Sendable {
    /// A client that names blobs as this database does asks for that by this header, with the value `sha1`. Then nobody needs an MD5.
    static let header = "Loveseat-Digests"

    /// By the SHA-1.
    static let stored = ContentNames(nil, computed: [:])

    private let md5s: BlobMD5s?
    /// The names that were not known before. A content that is not here, or is damaged, has only the SHA-1.
    private let computed: [BlobDigest: String]
    private let state = Mutex<Set<BlobDigest>>([])

    init(_ md5s: BlobMD5s?, computed: [BlobDigest: String]) { (self.md5s, self.computed) = (md5s, computed) }

    /// The name of a content. If it is not known, the answer has to be made again.
    func name(_ blob: BlobDigest) -> String {
        guard let md5s else { return blob.text }
        if let name = computed[blob] { return name }
        // One that cannot be read is computed again.
        if let md5 = try? md5s.known(blob) { return md5.text }
        _ = state.withLock { $0.insert(blob) }
        return blob.text
    }

    /// The name as an ETag has it, without the name of the hash function.
    func tag(_ blob: BlobDigest) -> String { String(name(blob).drop { $0 != "-" }.dropFirst()) }

    /// The contents whose names were needed and not known.
    var unknown: Set<BlobDigest> { state.withLock { $0 } }
}

/// Computes the MD5s of blobs for clients, on threads of its own: that of each blob once, however many ask for it, and in parts, so that a large
/// blob keeps nobody else waiting.
final class MD5Work: Sendable {
    /// How many damaged blobs are remembered, so that they are not read for each request.
    private static let maximumDamaged = 1_000

    private struct State {
        var running: [BlobDigest: Task<MD5Digest?, Never>] = [:]
        var damaged: Set<BlobDigest> = []
    }

    private let state = Mutex(State())

    /// The MD5 of a blob, which is known then; nil if the blob is not here or is damaged. `client`: its address.
    ///
    /// - Throws: `CancellationError`. The work goes on: the client may ask again.
    func md5(of blob: BlobDigest, in files: BlobFiles, for client: String) async throws -> MD5Digest? {
        let task: Task<MD5Digest?, Never>? = state.withLock { state in
            if state.damaged.contains(blob) { return nil }
            if let task = state.running[blob] { return task }
            let task = Task(executorPreference: BlockingThreads.requests) {
                let result = await self.compute(blob, files, client)
                self.state.withLock { $0.running[blob] = nil }
                return result
            }
            state.running[blob] = task
            return task
        }
        guard let task else { return nil }
        guard let result = await task.valueUnlessCancelled(on: BlockingThreads.requests) else {
            throw CancellationError()
        }
        return result
    }

    private func compute(_ blob: BlobDigest, _ files: BlobFiles, _ client: String) async -> MD5Digest? {
        var computation = BlobMD5Computation(blob, in: files)
        do {
            var hasMore = true
            while hasMore {
                let done = Int(clamping: computation.done)
                hasMore = try await BodyWorkers.shared.turn(of: client, done: done) { try computation.next() }
            }
        } catch { note(error, of: blob) }
        return computation.result
    }

    /// Computes an MD5 where the caller runs, for the simulator.
    func md5InPlace(of blob: BlobDigest, in files: BlobFiles) -> MD5Digest? {
        var computation = BlobMD5Computation(blob, in: files)
        do { while try computation.next() {} } catch { note(error, of: blob) }
        return computation.result
    }

    private func note(_ error: any Error, of blob: BlobDigest) {
        // A blob that is not here may come, and an error of the disk may pass.
        guard let error = error as? LoveseatError, error.code == .corruptData else { return }
        LogDomain.listener.log(.error, error.message)
        state.withLock { state in
            if state.damaged.count >= Self.maximumDamaged { state.damaged = [] }
            state.damaged.insert(blob)
        }
    }
}

extension Resource {
    /// Does the next part of an answer that names contents, as ``part(_:done:size:_:)`` does. If it finds contents whose MD5 is not known, that is
    /// computed, and the part is made again: `work` must leave everything as it was then.
    func naming<Value>(
        _ exchange: Exchange,
        _ entry: Databases.Entry,
        done: Int = 0,
        _ work: (ContentNames) throws -> Value
    ) async throws -> Value {
        if exchange.wantsStoredNames { return try await part(exchange, done: done) { try work(.stored) } }
        var computed: [BlobDigest: String] = [:]
        while true {
            let names = ContentNames(entry.store.blobs.md5s, computed: computed)
            let value = try await part(exchange, done: done) { try work(names) }
            let unknown = names.unknown
            if unknown.isEmpty { return value }
            let files = entry.store.blobs
            for blob in unknown.sorted(by: { $0.text.bytesPrecede($1.text) }) {
                let md5 =
                    server.settings.worksInPlace
                    ? server.caches.md5s.md5InPlace(of: blob, in: files)
                    : try await server.caches.md5s.md5(of: blob, in: files, for: exchange.peer.address)
                computed[blob] = md5?.text ?? blob.text
            }
            // This writes them. If somebody else is writing, the next transaction does: nobody waits for that.
            try? await entry.store.writeFromTask(within: .zero, call: "CouchDB's wire") { _ in }
        }
    }
}

extension Exchange {
    var wantsStoredNames: Bool { header(ContentNames.header)?.lowercased() == "sha1" }
}
