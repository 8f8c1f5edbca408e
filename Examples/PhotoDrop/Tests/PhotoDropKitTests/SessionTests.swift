import Foundation
import Loveseat
import PhotoDropCore
import PhotoDropKit
import Synchronization
import Testing

/// A receiver and senders in one process.
@Suite struct SessionTests {
    /// A folder that is removed with this object.
    final class Scratch {
        let path: String

        init() throws {
            path = FileManager.default.temporaryDirectory.appending(path: "photodrop-test-\(UUID())").path
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        }

        deinit { try? FileManager.default.removeItem(atPath: path) }

        @discardableResult
        func write(_ name: String, _ bytes: [UInt8]) throws -> String {
            let file = "\(path)/\(name)"
            try FileManager.default.createDirectory(
                at: URL(fileURLWithPath: file).deletingLastPathComponent(),
                withIntermediateDirectories: true
            )
            try Data(bytes).write(to: URL(fileURLWithPath: file))
            return file
        }
    }

    /// Random bytes behind the beginning of a PNG.
    static func picture(_ size: Int) -> [UInt8] {
        [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + RandomBytes.make(size)
    }

    /// What a program that is not PhotoDrop needs to replicate with a session.
    static func configuration(
        _ type: ReplicatorType,
        _ collection: CollectionConfiguration,
        to code: DropCode
    ) throws -> ReplicatorConfiguration {
        var configuration = ReplicatorConfiguration(
            collections: [collection],
            target: URLEndpoint(try #require(code.urls.first))
        )
        configuration.replicatorType = type
        configuration.pinnedServerFingerprint = code.pin.fingerprint
        configuration.authenticator = BasicAuthenticator(username: code.username, password: code.secret)
        return configuration
    }

    private func receiver(_ scratch: Scratch, _ change: (inout ReceiverOptions) -> Void = { _ in }) throws
        -> Receiver
    {
        var options = ReceiverOptions(folder: "\(scratch.path)/received")
        options.interface = "127.0.0.1"
        options.limits.freeBytes = 0
        change(&options)
        return try Receiver(options)
    }

    private func send(
        _ code: DropCode,
        _ paths: [String],
        sender: SenderID = SenderID(bytes: RandomBytes.make(8)),
        report: @escaping @Sendable (SendEvent) -> Void = { _ in }
    ) async throws -> SendSummary {
        let shelf = try PhotoShelf(sender: sender)
        do {
            let (photos, _) = await shelf.add(FileFinder.expand(paths))
            let target = try await DropTarget.find(code)
            let sender = PhotoSender(target, shelf: shelf, senderName: "Ana", patience: 30)
            let summary = try await sender.send(photos, report: report)
            await shelf.remove()
            return summary
        } catch {
            await shelf.remove()
            throw error
        }
    }

    @Test(.timeLimit(.minutes(1)))
    func photosArriveByteForByte() async throws {
        let scratch = try Scratch()
        var pictures: [String: [UInt8]] = [:]
        for number in 1...5 { pictures["IMG_\(number).png"] = Self.picture(200_000 * number) }
        for (name, bytes) in pictures { try scratch.write("from/\(name)", bytes) }
        let receiver = try receiver(scratch) { $0.count = 5 }
        let code = try await receiver.start()
        let running = Task { try await receiver.run() }
        let states = Mutex<[String: String]>([:])
        let summary = try await send(DropCode(text: code.text), ["\(scratch.path)/from"]) { event in
            if case .photo(let photo) = event { states.withLock { $0[photo.name] = photo.state.name } }
        }
        #expect(summary.stored == 5)
        #expect(try await running.value == .complete)
        #expect(states.withLock { $0.values.filter { $0 == "stored" }.count } == 5)
        for (name, bytes) in pictures {
            #expect(FileManager.default.contents(atPath: "\(receiver.folder)/\(name)") == Data(bytes))
        }
        #expect(!FileManager.default.fileExists(atPath: receiver.sessionFolder))
    }

    @Test(.timeLimit(.minutes(1)))
    func compactCodeWorks() async throws {
        let scratch = try Scratch()
        let file = try scratch.write("a.png", Self.picture(1_000))
        let receiver = try receiver(scratch) { $0.count = 1 }
        let code = try await receiver.start()
        let running = Task { try await receiver.run() }
        let compact = try #require(code.compactText(secret: receiver.record.secret))
        #expect(try await send(DropCode(text: compact), [file]).stored == 1)
        #expect(try await running.value == .complete)
    }

    @Test(.timeLimit(.minutes(1)))
    func sameContentIsSavedOnce() async throws {
        let scratch = try Scratch()
        let bytes = Self.picture(5_000)
        let first = try scratch.write("a.png", bytes)
        let second = try scratch.write("b.png", bytes)
        let receiver = try receiver(scratch)
        let code = try await receiver.start()
        let running = Task { try await receiver.run() }
        let (_, events) = receiver.hub.subscribe(after: 0, maximumWaiting: nil)
        let duplicates = Task {
            var seen: [Bool] = []
            for await entry in events {
                if case .saved(let photo) = entry.event { seen.append(photo.isDuplicate) }
            }
            return seen
        }
        let ana = SenderID(bytes: Array(1...8))
        #expect(try await send(code, [first, first, second], sender: ana).stored == 1)
        #expect(try await send(code, [first], sender: ana).stored == 1)
        #expect(try await send(code, [second]).stored == 1)
        receiver.stop()
        #expect(try await running.value == .stopped)
        #expect(await duplicates.value == [false, true])
        #expect(await receiver.saver.fileCount == 1)
        #expect(await receiver.saver.duplicateCount == 1)
        #expect(try FileManager.default.contentsOfDirectory(atPath: receiver.folder) == ["a.png"])
    }

    @Test(.timeLimit(.minutes(1)))
    func wrongSecretsAndPinsAreRefused() async throws {
        let scratch = try Scratch()
        let file = try scratch.write("a.png", Self.picture(1_000))
        let receiver = try receiver(scratch)
        let code = try await receiver.start()
        let running = Task { try await receiver.run() }
        let secret = DropSecret(bytes: RandomBytes.make(16)).full
        let wrongSecret = DropCode(
            urls: code.urls,
            pin: code.pin,
            secret: secret,
            session: code.session,
            name: nil
        )
        var error = await #expect(throws: DropError.self) { try await send(wrongSecret, [file]) }
        #expect(error?.kind == .refused)
        let wrongPin = DropCode(
            urls: code.urls,
            pin: try #require(DropPin(bytes: RandomBytes.make(32))),
            secret: code.secret,
            session: code.session,
            name: nil
        )
        error = await #expect(throws: DropError.self) { try await send(wrongPin, [file]) }
        #expect(error?.kind == .refused)
        receiver.stop()
        _ = try await running.value
        error = await #expect(throws: DropError.self) { try await send(code, [file]) }
        #expect(error?.kind == .refused)
        #expect(error?.message.contains("ask for a new code") == true)
        #expect(try FileManager.default.contentsOfDirectory(atPath: receiver.folder).isEmpty)
    }

    @Test(.timeLimit(.minutes(1)))
    func aSenderWaitsForAReceiverThatIsNotThereYet() async throws {
        let scratch = try Scratch()
        let receiver = try receiver(scratch) { $0.keeps = true }
        let code = try await receiver.start()
        var running = Task { try await receiver.run() }
        receiver.stop()
        _ = try await running.value
        let (events, event) = AsyncStream<SendEvent>.makeStream()
        let search = Task {
            try await DropTarget.find(.current(code), within: 50) { event.yield($0) }
        }
        for await event in events {
            guard case .waiting(let reason) = event else { continue }
            #expect(reason.contains("cannot reach"))
            break
        }
        let resumed = try Receiver(
            SessionRecord.options(at: receiver.sessionFolder),
            resuming: receiver.sessionFolder
        )
        _ = try await resumed.start()
        running = Task { try await resumed.run() }
        _ = try await search.value
        resumed.stop()
        _ = try await running.value
    }

    @Test(.timeLimit(.minutes(1)))
    func nobodyListensAtACodeWithoutEncryption() async throws {
        let scratch = try Scratch()
        let receiver = try receiver(scratch)
        let own = try await receiver.start()
        let running = Task { try await receiver.run() }
        let port = try #require(own.urls.first?.port)
        let code = try LegacyCode(text: "http://drop:secret@127.0.0.1:\(port)/drop")
        _ = try await DropTarget.find(code)
        receiver.stop()
        _ = try await running.value
        let error = await #expect(throws: DropError.self) { try await DropTarget.find(code) }
        #expect(error?.kind == .unreachable)
    }

    @Test(.timeLimit(.minutes(1)))
    func onlyTimeEndsTheAttemptsToConnect() async throws {
        let scratch = try Scratch()
        let receiver = try receiver(scratch)
        let code = try await receiver.start()
        let running = Task { try await receiver.run() }
        let shelf = try PhotoShelf(sender: SenderID(bytes: RandomBytes.make(8)))
        let sender = PhotoSender(
            try await DropTarget.find(code),
            shelf: shelf,
            senderName: nil,
            patience: .infinity
        )
        #expect(sender.configuration(pushing: ["photo:1"]).maxAttempts == .max)
        await shelf.remove()
        receiver.stop()
        _ = try await running.value
    }

    @Test(.timeLimit(.minutes(1)))
    func filesAndDuplicatesAreCounted() async throws {
        let scratch = try Scratch()
        let bytes = Self.picture(5_000)
        // The folder has one photo before the session begins.
        try scratch.write("received/old.png", bytes)
        let old = try scratch.write("from/old.png", bytes)
        let new = try scratch.write("from/new.png", Self.picture(5_000))
        let receiver = try receiver(scratch) { $0.allowsRecall = true }
        let code = try await receiver.start()
        let running = Task { try await receiver.run() }
        let ana = SenderID(bytes: Array(1...8))
        #expect(try await send(code, [old, new], sender: ana).stored == 2)
        #expect(try await send(code, [new]).stored == 1)
        while receiver.hub.photos.count < 3 { try await Task.sleep(for: .milliseconds(20)) }
        // A file that was there before the session stays when its photo is recalled.
        let target = try await DropTarget.find(code)
        let run = RecallRun(target, sender: ana, patience: 30)
        let (recalls, _) = try await run.recall(FileFinder.expand([old]), PhotoShelf.Changes())
        #expect(recalls.map(\.outcome) == [.recalled])
        while receiver.hub.photos.count > 2 { try await Task.sleep(for: .milliseconds(20)) }
        receiver.stop()
        _ = try await running.value
        #expect(await receiver.saver.savedCount == 3)
        #expect(await receiver.saver.fileCount == 1)
        #expect(await receiver.saver.duplicateCount == 1)
        let files = try FileManager.default.contentsOfDirectory(atPath: receiver.folder).sorted()
        #expect(files == ["new.png", "old.png"])
    }

    @Test(.timeLimit(.minutes(1)))
    func `a video arrives with its name, and with the date of the sender's file`() async throws {
        let scratch = try Scratch()
        let movie = try scratch.write(
            "IMG_1.MOV",
            [0, 0, 0, 20] + Array("ftypqt  ".utf8) + RandomBytes.make(1_000)
        )
        let raw = try scratch.write("IMG_1.CR2", Array("II*\0".utf8) + RandomBytes.make(1_000))
        let date = Date(timeIntervalSince1970: 1_000_000_000)
        for file in [movie, raw] {
            try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: file)
        }
        let receiver = try receiver(scratch) { $0.count = 2 }
        let code = try await receiver.start()
        let running = Task { try await receiver.run() }
        #expect(try await send(code, [movie, raw]).stored == 2)
        #expect(try await running.value == .complete)
        for name in ["IMG_1.MOV", "IMG_1.CR2"] {
            let file = "\(receiver.folder)/\(name)"
            #expect(
                FileManager.default.contents(atPath: file)
                    == FileManager.default.contents(atPath: "\(scratch.path)/\(name)")
            )
            let attributes = try FileManager.default.attributesOfItem(atPath: file)
            #expect(attributes[.modificationDate] as? Date == date)
        }
    }

    @Test(.timeLimit(.minutes(1)))
    func nothingCanBePulled() async throws {
        let scratch = try Scratch()
        let file = try scratch.write("a.png", Self.picture(1_000))
        let receiver = try receiver(scratch)
        let code = try await receiver.start()
        let running = Task { try await receiver.run() }
        _ = try await send(code, [file])
        let thief = try Database(name: "thief", config: DatabaseConfiguration(directory: scratch.path))
        let collection = try thief.defaultCollection()
        let own = CollectionConfiguration(collection: collection)
        let replicator = Replicator(try Self.configuration(.pull, own, to: code))
        replicator.start()
        let status = await replicator.waitUntilStopped()
        #expect(status.error?.code == .httpForbidden)
        #expect(collection.count == 0)
        try await thief.close()
        receiver.stop()
        _ = try await running.value
    }

    @Test(.timeLimit(.minutes(1)))
    func largePhotosAreRefusedByName() async throws {
        let scratch = try Scratch()
        try scratch.write("from/big.png", Self.picture(2_000_000))
        try scratch.write("from/small.png", Self.picture(1_000))
        let receiver = try receiver(scratch) { $0.limits.photoBytes = 1 << 20 }
        let code = try await receiver.start()
        let running = Task { try await receiver.run() }
        let errors = Mutex<[String]>([])
        let summary = try await send(code, ["\(scratch.path)/from"]) { event in
            if case .photo(let photo) = event, case .failed(let error) = photo.state {
                errors.withLock { $0.append(error) }
            }
        }
        #expect(summary.stored == 1)
        #expect(summary.failed == 1)
        #expect(errors.withLock { $0 } == ["big.png is larger than 1 MB, the limit of this session"])
        receiver.stop()
        _ = try await running.value
    }

    @Test(.timeLimit(.minutes(1)))
    func keptSessionsGoOn() async throws {
        let scratch = try Scratch()
        let first = try scratch.write("a.png", Self.picture(1_000))
        let second = try scratch.write("b.png", Self.picture(1_000))
        let receiver = try receiver(scratch) { options in
            (options.keeps, options.idleSeconds, options.name) = (true, 500, "Ana's laptop")
            options.page.port = 4_711
        }
        let code = try await receiver.start()
        var running = Task { try await receiver.run() }
        _ = try await send(code, [first])
        receiver.stop()
        _ = try await running.value
        let options = try SessionRecord.options(at: receiver.sessionFolder)
        #expect(options.interface == "127.0.0.1")
        #expect(options.limits == receiver.options.limits)
        #expect(options.idleSeconds == 500)
        #expect(options.name == "Ana's laptop")
        #expect(options.page.port == 4_711)
        #expect(!options.keeps)
        let resumed = try Receiver(options, resuming: receiver.sessionFolder)
        let again = try await resumed.start()
        #expect(again.urls == code.urls)
        #expect(again.secret == code.secret)
        #expect(again.pin == code.pin)
        running = Task { try await resumed.run() }
        _ = try await send(code, [second])
        resumed.stop()
        _ = try await running.value
        let files = try FileManager.default.contentsOfDirectory(atPath: resumed.folder).sorted()
        #expect(files == ["a.png", "b.png"])
        #expect(await resumed.saver.fileCount == 2)
        #expect(!FileManager.default.fileExists(atPath: receiver.sessionFolder))
    }
}
