import Foundation
import Loveseat
import PhotoDropCore
import PhotoDropKit
import Testing

/// Thumbnails that senders make. They need `vipsthumbnail`.
@Suite(.enabled(if: Vips() != nil)) struct ThumbnailTests {
    /// A picture with as many bytes behind it.
    private func picture(padding: Int) -> [UInt8] {
        DrawnPicture(number: 1).png + [UInt8](repeating: 0, count: padding)
    }

    private func photo(of file: String, _ changes: PhotoShelf.Changes = PhotoShelf.Changes()) async throws
        -> (
            document: Document, thumbnail: [UInt8]?
        )
    {
        let shelf = try PhotoShelf(sender: SenderID(bytes: Array(1...8)))
        let photo = await shelf.add(FileFinder.expand([file]), changes).photos.first
        let content = try photo?.thumbnail.map { try Array(shelf.database.blobContent($0)) }
        await shelf.remove()
        return (try #require(photo).document, content)
    }

    @Test(.timeLimit(.minutes(1)))
    func largePhotosHaveThumbnails() async throws {
        let scratch = try SessionTests.Scratch()
        let file = try scratch.write("large.png", picture(padding: 9 << 20))
        let (document, thumbnail) = try await photo(of: file)
        let received = try #require(ReceivedPhoto(document))
        #expect(received.thumbnail?.contentType == "image/jpeg")
        let content = try #require(thumbnail)
        #expect(content.count <= Int(ReceivedPhoto.maximumThumbnail))
        #expect(received.thumbnail?.length == UInt64(content.count))
        let info = try #require(ImageInfo(header: content))
        #expect(info.type == .jpeg)
        #expect(max(info.width ?? 0, info.height ?? 0) == 320)
        #expect(info.orientation == nil && info.taken == nil)
        // The same file makes the same revision.
        #expect(try await photo(of: file).document.json == document.json)
        var changes = PhotoShelf.Changes()
        changes.makesThumbnails = false
        let plain = try await photo(of: file, changes).document
        #expect(plain.id == document.id)
        #expect(ReceivedPhoto(plain)?.thumbnail == nil)
    }

    @Test(.timeLimit(.minutes(1)))
    func photosThatCannotBeDecodedAreSentWithout() async throws {
        let scratch = try SessionTests.Scratch()
        let heic = try scratch.write(
            "broken.heic",
            [0, 0, 0, 24] + Array("ftypheic".utf8) + RandomBytes.make(500)
        )
        let (document, thumbnail) = try await photo(of: heic)
        #expect(ReceivedPhoto(document) != nil)
        #expect(thumbnail == nil)
    }

    @Test(.timeLimit(.minutes(1)))
    func photosThatBrowsersShowHaveNone() async throws {
        let scratch = try SessionTests.Scratch()
        #expect(try await photo(of: scratch.write("small.png", picture(padding: 0))).thumbnail == nil)
    }

    private func receiver(_ scratch: SessionTests.Scratch) throws -> Receiver {
        var options = ReceiverOptions(folder: "\(scratch.path)/received")
        (options.interface, options.limits.freeBytes, options.allowsRecall) = ("127.0.0.1", 0, true)
        return try Receiver(options)
    }

    private func send(_ file: String, makesThumbnails: Bool, to target: DropTarget, from id: SenderID)
        async throws -> SendSummary
    {
        let shelf = try PhotoShelf(sender: id)
        var changes = PhotoShelf.Changes()
        changes.makesThumbnails = makesThumbnails
        let photos = await shelf.add(FileFinder.expand([file]), changes).photos
        let sender = PhotoSender(target, shelf: shelf, senderName: "Ana", patience: 30)
        let summary = try await sender.send(photos) { _ in }
        await shelf.remove()
        return summary
    }

    /// A thumbnail is part of a document: one run may have it, and the next one not.
    @Test(.timeLimit(.minutes(1)))
    func aPhotoIsSavedOnceWithAndWithoutThumbnail() async throws {
        let scratch = try SessionTests.Scratch()
        let file = try scratch.write("large.png", picture(padding: 9 << 20))
        let receiver = try receiver(scratch)
        let code = try await receiver.start()
        let running = Task { try await receiver.run() }
        let target = try await DropTarget.find(code)
        let ana = SenderID(bytes: Array(1...8))
        for makesThumbnails in [false, true, false] {
            let summary = try await send(file, makesThumbnails: makesThumbnails, to: target, from: ana)
            #expect(summary.stored == 1)
        }
        while receiver.hub.photos.isEmpty { try await Task.sleep(for: .milliseconds(20)) }
        receiver.stop()
        _ = try await running.value
        #expect(await receiver.saver.savedCount == 1)
        #expect(await receiver.saver.failureCount == 0)
        #expect(try FileManager.default.contentsOfDirectory(atPath: receiver.folder) == ["large.png"])
    }

    @Test(.timeLimit(.minutes(1)), arguments: [false, true])
    func aPhotoIsRecalledWithOrWithoutThumbnail(hadThumbnail: Bool) async throws {
        let scratch = try SessionTests.Scratch()
        let file = try scratch.write("large.png", picture(padding: 9 << 20))
        let receiver = try receiver(scratch)
        let code = try await receiver.start()
        let running = Task { try await receiver.run() }
        let target = try await DropTarget.find(code)
        let ana = SenderID(bytes: Array(1...8))
        let summary = try await send(file, makesThumbnails: hadThumbnail, to: target, from: ana)
        #expect(summary.stored == 1)
        while receiver.hub.photos.isEmpty { try await Task.sleep(for: .milliseconds(20)) }
        let run = RecallRun(target, sender: ana, patience: 30)
        let (recalls, _) = try await run.recall(FileFinder.expand([file]), PhotoShelf.Changes())
        #expect(recalls.map(\.outcome) == [.recalled])
        while !receiver.hub.photos.isEmpty { try await Task.sleep(for: .milliseconds(20)) }
        receiver.stop()
        _ = try await running.value
        #expect(try FileManager.default.contentsOfDirectory(atPath: receiver.folder).isEmpty)
    }
}
