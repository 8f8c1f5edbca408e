import Foundation
import Loveseat
import PhotoDropCore
import Synchronization

/// Pushes photos of a shelf to a receiver.
package struct PhotoSender: Sendable {
    private static let batchBytes = 8
    /// A batch lists its photos if its document stays small by that.
    private static let maximumListed = 500
    private static let attempts: UInt = 10
    private static let maximumWait = 30.0

    private let target: DropTarget
    private let shelf: PhotoShelf
    private let senderName: String?
    /// How long nothing may move before sending is given up, in seconds.
    private let patience: Double

    package init(_ target: DropTarget, shelf: PhotoShelf, senderName: String?, patience: Double) {
        self.target = target
        self.shelf = shelf
        self.senderName = senderName
        self.patience = patience
    }

    /// Sends some photos.
    ///
    /// - Parameters:
    ///   - photos: The photos; others of the shelf are not sent.
    ///   - report: Called for each photo whose state changes.
    /// - Returns: How many photos the receiver has stored.
    /// - Throws: ``DropError`` if sending ended early. The photos that were stored until then have been reported.
    package func send(_ photos: [PhotoDocument], report: @escaping @Sendable (SendEvent) -> Void)
        async throws -> SendSummary
    {
        let start = ContinuousClock.now
        let progress = SendProgress(photos, report: report)
        var batch = BatchDocument(
            random: RandomBytes.make(Self.batchBytes),
            sender: shelf.sender,
            senderName: senderName,
            photos: photos.count <= Self.maximumListed ? photos.map(\.id) : [],
            count: photos.count,
            bytes: photos.reduce(0) { $0 + $1.size }
        )
        report(.connecting(target.address))
        try shelf.collection.save(batch.document)
        try check(await push([batch.id], progress), progress)
        try check(await push(photos.map(\.id), progress), progress)
        // The photos are stored, whatever becomes of this.
        batch.isDone = true
        if var document = try shelf.collection.document(id: batch.id) {
            document["done"] = true
            try shelf.collection.save(document)
            _ = await push([batch.id], progress)
        }
        var summary = progress.summary
        summary.seconds = (ContinuousClock.now - start) / .seconds(1)
        report(.done(summary))
        return summary
    }

    /// Pushes some documents once, and returns why that ended early; nil if it did not.
    private func push(_ ids: [String], _ progress: SendProgress) async -> LoveseatError? {
        guard !ids.isEmpty else { return nil }
        var collection = CollectionConfiguration(collection: shelf.collection)
        collection.documentIDs = ids
        var configuration = ReplicatorConfiguration(
            collections: [collection],
            target: target.endpoint
        )
        configuration.replicatorType = .push
        configuration.pinnedServerFingerprint = target.fingerprint
        configuration.authenticator = target.credentials
        configuration.maxAttempts = Self.attempts
        configuration.maxAttemptWaitTime = Self.maximumWait
        let replicator = Replicator(configuration)
        let feeds = (replicator.statuses, replicator.documentReplications, replicator.blobTransfers)
        return await withTaskCancellationHandler {
            await withDiscardingTaskGroup { group in
                group.addTask { for await status in feeds.0 { progress.take(status) } }
                group.addTask { for await batch in feeds.1 { progress.take(batch) } }
                group.addTask { for await transfer in feeds.2 { progress.take(transfer) } }
                replicator.start()
                let watchdog = Task { await watch(replicator, progress) }
                await replicator.waitUntilStopped()
                watchdog.cancel()
            }
            if progress.isStuck {
                return LoveseatError(.timeout, "nothing moved for \(Int(patience)) seconds")
            }
            if let error = replicator.status.error { return error }
            guard !Task.isCancelled else { return nil }
            do throws(LoveseatError) {
                progress.finish(
                    ids,
                    refused: try replicator.refusedDocuments(collection: shelf.collection),
                    pending: try replicator.pendingDocumentIds(collection: shelf.collection)
                )
                return nil
            } catch { return error }
        } onCancel: {
            replicator.stop()
        }
    }

    /// Stops a replicator when nothing has moved for too long.
    private func watch(_ replicator: Replicator, _ progress: SendProgress) async {
        while (try? await Task.sleep(for: .milliseconds(500))) != nil {
            guard progress.secondsSinceNews > patience else { continue }
            progress.giveUp()
            return replicator.stop()
        }
    }

    private func check(_ error: LoveseatError?, _ progress: SendProgress) throws {
        try Task.checkCancellation()
        guard let error else { return }
        let summary = progress.summary
        let counts = "\(summary.stored) of \(progress.count) were received"
        switch error.code {
        case .httpAuthRequired:
            throw DropError(.refused, "the code is used up: ask for a new one")
        case .tlsCertUnknownRoot, .tlsCertUntrusted:
            throw DropError(.refused, "this is not the device that showed the code: ask for a new code")
        case .webSocketGoingAway:
            throw DropError(.unreachable, "the receiver has stopped; \(counts)")
        case .serviceUnavailable:
            throw DropError(.unreachable, "too many senders are connected: try again later")
        case .timeout where progress.isStuck:
            throw DropError(.unreachable, "\(error.message); \(counts)")
        default:
            throw DropError(.unreachable, "the connection was lost: \(error.message); \(counts)")
        }
    }
}

/// Keeps how far each photo is.
private final class SendProgress: Sendable {
    /// How often the bytes of one photo are reported, at most.
    private static let interval = Duration.milliseconds(200)

    private struct State {
        var photos: [String: PhotoProgress]
        var lastReport: [String: ContinuousClock.Instant] = [:]
        var lastNews = ContinuousClock.now
        var isStuck = false
    }

    private let report: @Sendable (SendEvent) -> Void
    private let state: Mutex<State>
    let count: Int

    init(_ photos: [PhotoDocument], report: @escaping @Sendable (SendEvent) -> Void) {
        self.report = report
        count = photos.count
        let entries = photos.map { ($0.id, PhotoProgress(id: $0.id, name: $0.name, size: $0.size)) }
        state = Mutex(State(photos: Dictionary(entries) { first, _ in first }))
        for (_, photo) in entries { report(.photo(photo)) }
    }

    var isStuck: Bool { state.withLock { $0.isStuck } }

    func giveUp() { state.withLock { $0.isStuck = true } }

    var secondsSinceNews: Double { (ContinuousClock.now - state.withLock { $0.lastNews }) / .seconds(1) }

    var summary: SendSummary {
        state.withLock { state in
            var summary = SendSummary()
            for photo in state.photos.values {
                switch photo.state {
                case .stored:
                    summary.stored += 1
                    summary.bytes += photo.size
                case .failed: summary.failed += 1
                case .queued, .sending: break
                }
            }
            return summary
        }
    }

    /// Settles the photos of which the replicator has reported nothing, when it is done: the receiver had them already, or it refused
    /// them the last time.
    func finish(_ ids: [String], refused: [String: LoveseatError], pending: Set<String>) {
        for id in ids {
            let news = state.withLock { state -> PhotoProgress? in
                guard var photo = state.photos[id], photo.state == .queued || photo.state == .sending else {
                    return nil
                }
                if let error = refused[id] {
                    photo.state = .failed(Self.reason(error))
                } else if pending.contains(id) {
                    photo.state = .failed("it was not sent")
                } else {
                    (photo.state, photo.sent) = (.stored, photo.size)
                }
                state.photos[id] = photo
                return photo
            }
            if let news { report(.photo(news)) }
        }
    }

    func take(_ status: Replicator.Status) {
        if status.activity == .offline, let error = status.error {
            report(.waiting(error.message))
        } else if status.activity == .busy || status.activity == .idle {
            state.withLock { $0.lastNews = .now }
        }
    }

    func take(_ transfer: BlobTransfer) {
        guard let id = transfer.documentID else { return }
        let now = ContinuousClock.now
        let news = state.withLock { state -> PhotoProgress? in
            state.lastNews = now
            guard var photo = state.photos[id], photo.state != .stored else { return nil }
            photo.state = .sending
            photo.sent = transfer.transferred
            state.photos[id] = photo
            let isDue = state.lastReport[id].map { now - $0 >= Self.interval } ?? true
            guard isDue else { return nil }
            state.lastReport[id] = now
            return photo
        }
        if let news { report(.photo(news)) }
    }

    func take(_ batch: DocumentReplication) {
        for document in batch.documents {
            let news = state.withLock { state -> PhotoProgress? in
                state.lastNews = .now
                guard var photo = state.photos[document.id] else { return nil }
                // The same photo of this sender is there already, under another name.
                let isStored = document.error == nil || document.error?.code == .httpConflict
                photo.state = isStored ? .stored : .failed(Self.reason(document.error))
                if isStored { photo.sent = photo.size }
                state.photos[document.id] = photo
                return photo
            }
            if let news { report(.photo(news)) }
        }
    }

    /// The text before the receiver's own words in a replicator's messages.
    private static let saidBefore = "the peer says \""

    private static func reason(_ error: LoveseatError?) -> String {
        guard let error else { return "" }
        let said = error.message.firstRange(of: saidBefore).map { error.message[$0.upperBound...] }
        let text = said.map { $0.hasSuffix("\"") ? String($0.dropLast()) : String($0) } ?? error.message
        switch error.code {
        case .tooLarge, .diskFull, .httpForbidden: return text
        case .corruptData: return "it changed while it was sent"
        default: return error.message
        }
    }
}
