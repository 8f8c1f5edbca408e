import Loveseat
import PhotoDropCore

/// A photo that its sender takes back.
package struct Recall: Hashable, Sendable {
    package enum Outcome: Hashable, Sendable {
        /// The receiver has deleted it.
        case recalled
        /// The receiver has another version of it.
        case differs
        case failed(String)

        init(_ error: LoveseatError?) {
            guard let error else {
                self = .recalled
                return
            }
            switch error.code {
            case .httpConflict: self = .differs
            case .httpForbidden:
                self = .failed("this sender has not sent it, or the receiver does not allow recalls")
            default: self = .failed(error.message)
            }
        }
    }

    package let photo: PhotoDocument
    package fileprivate(set) var outcome: Outcome
}

/// Takes back what a sender has sent.
package struct RecallRun: Sendable {
    private let target: DropTarget
    private let sender: SenderID
    private let patience: Double

    /// - Parameters:
    ///   - target: The receiver.
    ///   - sender: The ID of the sender that has sent the photos.
    ///   - patience: How long nothing may move, in seconds.
    package init(_ target: DropTarget, sender: SenderID, patience: Double) {
        self.target = target
        self.sender = sender
        self.patience = patience
    }

    /// Makes the documents of some files again, and deletes them at the receiver.
    ///
    /// - Parameters:
    ///   - items: The files.
    ///   - changes: How they were changed when they were sent.
    /// - Returns: What became of each photo, and the files that are not photos.
    /// - Throws: ``DropError`` if the receiver could not be reached until the end.
    package func recall(_ items: [FileFinder.Item], _ changes: PhotoShelf.Changes) async throws -> (
        recalls: [Recall], refusals: [PhotoShelf.Refusal]
    ) {
        let first = try await recall(items, changes, among: nil)
        var recalls = first.recalls
        // A photo with a thumbnail may have been sent without it, as another document. When both are deleted, the receiver accepts only
        // one of the two deletions as current, and reports a conflict for the other one. So the first one is tried once more.
        for makesThumbnails in [false, true] {
            let left = recalls.filter { $0.outcome == .differs && $0.photo.thumbnail != nil }
            guard !left.isEmpty else { break }
            var changes = changes
            changes.makesThumbnails = makesThumbnails
            let again = try await recall(items, changes, among: Set(left.map(\.photo.id))).recalls
            let outcomes = Dictionary(again.map { ($0.photo.id, $0.outcome) }) { first, _ in first }
            for index in recalls.indices {
                recalls[index].outcome = outcomes[recalls[index].photo.id] ?? recalls[index].outcome
            }
        }
        return (recalls, first.refusals)
    }

    /// `ids`: the photos to recall; nil for all.
    private func recall(_ items: [FileFinder.Item], _ changes: PhotoShelf.Changes, among ids: Set<String>?)
        async throws -> (recalls: [Recall], refusals: [PhotoShelf.Refusal])
    {
        let shelf = try PhotoShelf(sender: sender)
        do {
            let (photos, refusals) = await shelf.add(items, changes)
            let sender = PhotoSender(target, shelf: shelf, senderName: nil, patience: patience)
            let recalls = try await sender.recall(photos.filter { ids?.contains($0.id) ?? true })
            await shelf.remove()
            return (recalls, refusals)
        } catch {
            await shelf.remove()
            throw error
        }
    }
}
