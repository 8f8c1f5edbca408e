import Foundation
import Loveseat
import PhotoDropCore

/// Pushes photos of a shelf to a receiver, and takes them back.
package struct PhotoSender: Sendable {
    private static let batchBytes = 8
    /// A batch lists its photos if its document stays small by that.
    private static let maximumListed = 500
    private static let maximumWait = 30.0
    /// How long to wait after an error of the network.
    private static let networkPause = Duration.seconds(5)

    private let target: DropTarget
    private let shelf: PhotoShelf
    private let senderName: String?
    /// How long nothing may move before sending is given up, in seconds; infinite to go on until the task is cancelled.
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
        try check(await push([batch.id], progress), progress, "received")
        try check(await push(photos.map(\.id), progress), progress, "received")
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

    /// Deletes photos at the receiver. Their files go too, unless somebody has changed them.
    ///
    /// A photo can only be recalled as it was sent: with the same sender ID, name and content.
    ///
    /// - Parameter photos: Photos of the shelf, from which they are deleted.
    /// - Returns: What became of each photo, in order.
    /// - Throws: ``DropError`` if the receiver could not be reached until the end.
    package func recall(_ photos: [PhotoDocument]) async throws -> [Recall] {
        for photo in photos { try shelf.collection.delete(id: photo.id) }
        let progress = SendProgress(photos) { _ in }
        try check(await push(photos.map(\.id), progress), progress, "recalled")
        return photos.map { photo in
            Recall(photo: photo, outcome: Recall.Outcome(progress.error(of: photo.id)))
        }
    }

    /// The settings to push some documents once. Time alone ends the attempts to connect, not their number.
    package func configuration(pushing ids: [String]) -> ReplicatorConfiguration {
        var collection = CollectionConfiguration(collection: shelf.collection)
        collection.documentIDs = ids
        var configuration = ReplicatorConfiguration(
            collections: [collection],
            target: target.endpoint
        )
        configuration.replicatorType = .push
        configuration.pinnedServerFingerprint = target.fingerprint
        configuration.authenticator = target.credentials
        configuration.maxAttempts = .max
        configuration.maxAttemptWaitTime = Self.maximumWait
        return configuration
    }

    /// Pushes some documents, and returns why that ended early; nil if it did not.
    ///
    /// A replicator connects again after most errors, but ends when this computer has no network. Then this starts another one.
    private func push(_ ids: [String], _ progress: SendProgress) async -> LoveseatError? {
        while true {
            guard let error = await pushOnce(ids, progress) else { return nil }
            guard error.isOfNetwork, progress.secondsSinceNews <= patience else { return error }
            progress.wait(after: error)
            // A task that was cancelled must not start another replicator.
            guard (try? await Task.sleep(for: Self.networkPause)) != nil else { return error }
        }
    }

    private func pushOnce(_ ids: [String], _ progress: SendProgress) async -> LoveseatError? {
        guard !ids.isEmpty else { return nil }
        let replicator = Replicator(configuration(pushing: ids))
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
                    refused: Dictionary(
                        try replicator.refusedDocuments(collection: shelf.collection).map {
                            ($0.documentID, $0.error)
                        }
                    ) { first, _ in first },
                    pending: Set(try replicator.pendingDocumentIds(collection: shelf.collection))
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

    /// Explains why a push ended early. `done`: what became of the photos until then.
    private func check(_ error: LoveseatError?, _ progress: SendProgress, _ done: String) throws {
        try Task.checkCancellation()
        guard let error else { return }
        let counts = "\(progress.summary.stored) of \(progress.count) were \(done)"
        switch error.code {
        case .httpAuthRequired:
            throw DropError(.refused, "the code is wrong or used up: ask for a new one")
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

extension LoveseatError {
    /// Errors that may pass when the network is back, or when the receiver has started again.
    fileprivate var isOfNetwork: Bool {
        switch code.domain {
        case .posix:
            [ENETDOWN, ENETUNREACH, EHOSTDOWN, EHOSTUNREACH, EADDRNOTAVAIL, ENOTCONN, EPIPE]
                .contains { Int($0) == code.value }
        default: code == .unknownHost || code == .tlsHandshakeFailed
        }
    }
}
