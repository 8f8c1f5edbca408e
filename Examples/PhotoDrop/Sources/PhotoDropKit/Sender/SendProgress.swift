import Loveseat
import PhotoDropCore
import Synchronization

/// Keeps how far each photo is.
final class SendProgress: Sendable {
    /// How often the bytes of one photo are reported, at most.
    private static let interval = Duration.milliseconds(200)

    private struct State {
        var photos: [String: PhotoProgress]
        /// Why the receiver did not take a document.
        var errors: [String: LoveseatError] = [:]
        var lastReport: [String: ContinuousClock.Instant] = [:]
        var lastNews = ContinuousClock.now
        var isStuck = false
    }

    private let report: @Sendable (SendEvent) -> Void
    /// The digests of the photos: their thumbnails are transferred too, and do not count.
    private let digests: [String: BlobDigest]
    private let state: Mutex<State>
    let count: Int

    init(_ photos: [PhotoDocument], report: @escaping @Sendable (SendEvent) -> Void) {
        self.report = report
        count = photos.count
        digests = Dictionary(photos.map { ($0.id, $0.photo.digest) }) { first, _ in first }
        let entries = photos.map { ($0.id, PhotoProgress(id: $0.id, name: $0.name, size: $0.size)) }
        state = Mutex(State(photos: Dictionary(entries) { first, _ in first }))
        for (_, photo) in entries { report(.photo(photo)) }
    }

    var isStuck: Bool { state.withLock { $0.isStuck } }

    /// Why the receiver did not take a document; nil if it did.
    func error(of id: String) -> LoveseatError? { state.withLock { $0.errors[id] } }

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
                    state.errors[id] = error
                    photo.state = .failed(Self.reason(error))
                } else if pending.contains(id) {
                    state.errors[id] = LoveseatError(.unexpectedError, "it was not sent")
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

    /// The connection broke, and is tried again.
    func wait(after error: LoveseatError) { report(.waiting(error.message)) }

    func take(_ status: Replicator.Status) {
        if status.activity == .offline, let error = status.error {
            wait(after: error)
        } else if status.activity == .busy || status.activity == .idle {
            state.withLock { $0.lastNews = .now }
        }
    }

    func take(_ transfer: BlobTransfer) {
        guard let id = transfer.documentID else { return }
        let now = ContinuousClock.now
        let news = state.withLock { state -> PhotoProgress? in
            state.lastNews = now
            guard var photo = state.photos[id], photo.state != .stored, transfer.digest == digests[id] else {
                return nil
            }
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
                state.errors[document.id] = document.error
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
