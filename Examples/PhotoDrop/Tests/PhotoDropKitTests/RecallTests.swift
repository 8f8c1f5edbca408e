import Foundation
import Loveseat
import PhotoDropCore
import PhotoDropKit
import Testing

/// Senders that take back what they have sent, and photos that the receiver removes.
@Suite struct RecallTests {
    private let scratch: SessionTests.Scratch
    private let shelf: PhotoShelf
    private let photos: [PhotoDocument]

    init() async throws {
        scratch = try SessionTests.Scratch()
        for name in ["a.png", "b.png"] {
            try scratch.write("from/\(name)", SessionTests.picture(5_000))
        }
        shelf = try PhotoShelf(sender: SenderID(bytes: Array(1...8)))
        photos = await shelf.add(FileFinder.expand(["\(scratch.path)/from"])).photos
        try #require(photos.count == 2)
    }

    private func receiver(_ change: (inout ReceiverOptions) -> Void) throws -> Receiver {
        var options = ReceiverOptions(folder: "\(scratch.path)/received")
        options.interface = "127.0.0.1"
        options.limits.freeBytes = 0
        change(&options)
        return try Receiver(options)
    }

    private func files(_ receiver: Receiver) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: receiver.folder).sorted()
    }

    private func send(to code: DropCode) async throws {
        let sender = PhotoSender(
            try await DropTarget.find(code),
            shelf: shelf,
            senderName: "Ana",
            patience: 30
        )
        #expect(try await sender.send(photos) { _ in }.stored == 2)
    }

    /// Deletes both photos, pushes that, and returns the receiver's refusals.
    private func recall(_ code: DropCode) async throws -> [String] {
        for photo in photos { try shelf.collection.delete(id: photo.id) }
        var collection = CollectionConfiguration(collection: shelf.collection)
        collection.documentIDs = photos.map(\.id)
        let replicator = Replicator(try SessionTests.configuration(.push, collection, to: code))
        let events = replicator.documentReplications
        replicator.start()
        var refusals: [String] = []
        for await batch in events { refusals += batch.documents.compactMap { $0.error?.message } }
        #expect(await replicator.waitUntilStopped().error == nil)
        return refusals
    }

    /// Waits until as many photos are gone, and returns the names of their files, as the events have them.
    @discardableResult
    private func waitForTheEnd(of count: Int, _ receiver: Receiver) async -> Set<String?> {
        var files: [String?] = []
        let (missed, live) = receiver.hub.subscribe(after: 0, maximumWaiting: nil)
        for case .gone(_, let file) in missed.map(\.event) { files.append(file) }
        if files.count >= count { return Set(files) }
        for await entry in live {
            if case .gone(_, let file) = entry.event { files.append(file) }
            if files.count == count { break }
        }
        return Set(files)
    }

    @Test(.timeLimit(.minutes(1)))
    func recalledPhotosGoFromTheFolderUnlessSomebodyChangedThem() async throws {
        let receiver = try receiver { $0.allowsRecall = true }
        let code = try await receiver.start()
        let running = Task { try await receiver.run() }
        try await send(to: code)
        while try files(receiver).count < 2 { try await Task.sleep(for: .milliseconds(20)) }
        try scratch.write("received/b.png", SessionTests.picture(10))
        #expect(try await recall(code) == [])
        #expect(await waitForTheEnd(of: 2, receiver) == ["a.png", "b.png"])
        #expect(try files(receiver) == ["b.png"])
        #expect(receiver.hub.photos.isEmpty)
        receiver.stop()
        _ = try await running.value
        await shelf.remove()
    }

    /// What becomes of the photos if they are recalled by another process.
    private func recallFiles(
        _ code: DropCode,
        _ names: [String],
        sender: SenderID = SenderID(bytes: Array(1...8))
    ) async throws -> [Recall.Outcome] {
        let run = RecallRun(try await DropTarget.find(code), sender: sender, patience: 30)
        let items = FileFinder.expand(names.map { "\(scratch.path)/\($0)" })
        return try await run.recall(items, PhotoShelf.Changes()).recalls.map(\.outcome)
    }

    @Test(.timeLimit(.minutes(1)))
    func photosAreRecalledByTheirFiles() async throws {
        let receiver = try receiver { $0.allowsRecall = true }
        let code = try await receiver.start()
        let running = Task { try await receiver.run() }
        try await send(to: code)
        while try files(receiver).count < 2 { try await Task.sleep(for: .milliseconds(20)) }
        // Only what this sender has sent, and under its name.
        let stranger = SenderID(bytes: Array(2...9))
        let refused = try await recallFiles(code, ["from/a.png"], sender: stranger)
        guard case .failed? = refused.first else {
            Issue.record("a photo of another sender: \(refused)")
            return
        }
        let bytes = try #require(FileManager.default.contents(atPath: "\(scratch.path)/from/a.png"))
        try scratch.write("other/renamed.png", Array(bytes))
        #expect(try await recallFiles(code, ["other/renamed.png"]) == [.differs])
        #expect(try files(receiver) == ["a.png", "b.png"])
        // Twice is as good as once.
        for _ in 0..<2 { #expect(try await recallFiles(code, ["from/b.png"]) == [.recalled]) }
        await waitForTheEnd(of: 1, receiver)
        #expect(try files(receiver) == ["a.png"])
        receiver.stop()
        _ = try await running.value
        await shelf.remove()
    }

    @Test(.timeLimit(.minutes(1)))
    func nothingIsRecalledUnlessTheReceiverAllowsIt() async throws {
        let receiver = try receiver { _ in }
        let code = try await receiver.start()
        let running = Task { try await receiver.run() }
        try await send(to: code)
        let refusals = try await recall(code)
        #expect(refusals.count == 2 && refusals.allSatisfy { $0.contains("cannot be withdrawn") })
        guard case .failed(let reason)? = try await recallFiles(code, ["from/a.png"]).first else {
            Issue.record("the photo was recalled")
            return
        }
        #expect(reason.contains("does not allow recalls"))
        receiver.stop()
        _ = try await running.value
        #expect(try files(receiver) == ["a.png", "b.png"])
        await shelf.remove()
    }

    @Test(.timeLimit(.minutes(1)))
    func aFileThatAnotherPhotoNeedsStays() async throws {
        let receiver = try receiver { $0.allowsRecall = true }
        let code = try await receiver.start()
        let running = Task { try await receiver.run() }
        try await send(to: code)
        let other = try PhotoShelf(sender: SenderID(bytes: Array(2...9)))
        let (copies, _) = await other.add(FileFinder.expand(["\(scratch.path)/from/a.png"]))
        let target = try await DropTarget.find(code)
        let sender = PhotoSender(target, shelf: other, senderName: "Ben", patience: 30)
        #expect(try await sender.send(copies) { _ in }.stored == 1)
        while receiver.hub.photos.count < 3 { try await Task.sleep(for: .milliseconds(20)) }
        #expect(try await recall(code) == [])
        await waitForTheEnd(of: 2, receiver)
        #expect(try files(receiver) == ["a.png"])
        receiver.stop()
        _ = try await running.value
        await shelf.remove()
        await other.remove()
    }
}
