import Foundation
import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatTesting
import Synchronization
import Testing

/// Much at once between two peers, and peers that take nothing.
@Suite(.timeLimit(.minutes(1))) struct LargeTransferTests: PairSuite {
    let pair: DatabasePair

    init() throws { pair = try DatabasePair() }

    private func sync(_ type: ReplicatorType = .pushAndPull) async -> LoveseatError? {
        let replicator = replicator(type)
        replicator.start()
        return await replicator.waitUntilStopped().error
    }

    /// Frames to a passive peer and what it says, without anything in between.
    private actor Client {
        private let channel: LoopbackChannel
        private let connection = BLIPConnection()
        private(set) var answers: [BLIPConnection.Tag: Result<Message, ReplyError>] = [:]

        init(_ channel: LoopbackChannel) { self.channel = channel }

        /// Asks questions, with their places as tags, and returns when all are answered.
        func ask(_ messages: [Message]) async throws {
            answers = [:]
            for (index, message) in messages.enumerated() {
                try connection.send(message, tag: BLIPConnection.Tag(index))
            }
            try await flush()
            while answers.count < messages.count, let frames = try await channel.receive() {
                for frame in frames { try connection.receive(frame) }
                for event in connection.drainEvents() {
                    switch event {
                    case .response(let tag, let message): answers[tag] = .success(message)
                    case .failure(let tag, let error): answers[tag] = .failure(error)
                    default: break
                    }
                }
                try await flush()
            }
        }

        private func flush() async throws {
            while let frame = try connection.nextFrame() { try await channel.send([frame]) }
        }
    }

    private func serve() -> (client: Client, peers: PassiveReplicator, end: Task<LoveseatError?, Never>) {
        let (client, server) = LoopbackChannel.pair()
        let peers = PassiveReplicator(
            database: far,
            collections: [there],
            isReadOnly: false,
            usesDeltas: false,
            compressionLevel: 0
        )
        let end = Task { await peers.serve(PeerConnection(channel: server, negotiated: .mobile3)) }
        return (Client(client), peers, end)
    }

    @Test func `documents of 17 and 19 MB travel in both directions`() async throws {
        let text = String(repeating: "0123456789abcdef", count: 1 << 16)
        func large(_ id: String, _ megabytes: Int) -> Document {
            Document(id: id, ["text": .string(String(repeating: text, count: megabytes))])
        }
        try here.save(large("a", 17))
        try there.save(large("b", 19))
        try here.save(Document(id: "c", ["n": 1]))
        #expect(await sync() == nil)
        #expect(try here.contents() == there.contents())
        #expect(here.count == 3)
    }

    @Test func `260 blobs that are asked for at once are all sent`() async throws {
        let blobs = try (0..<260).map { number in
            try far.saveBlob([UInt8](repeating: UInt8(number & 0xFF), count: 80_000 + number))
        }
        try there.save(Document(id: "d", ["blobs": .array(blobs.map(\.json))]))
        let (client, peers, end) = serve()
        try await client.ask(
            blobs.map { ["Profile": "getAttachment", "digest": $0.digest.text, "docID": "d"] }
                .map { Message($0) }
        )
        for (index, answer) in await client.answers.sorted(by: { $0.key < $1.key }).map(\.value).enumerated()
        {
            #expect(try answer.get().body.count == 80_000 + index)
        }
        await peers.stop()
        _ = await end.value
    }

    /// Takes nothing from its peer, and gives it some frames.
    private final class DeafChannel: LoveseatBLIPReplication.MessageChannel {
        private struct State {
            var frames: [[UInt8]]
            var isClosed = false
            var waiters: [CheckedContinuation<Void, Never>] = []
            var observers: [CheckedContinuation<Void, Never>] = []
            var readsAgain = false
        }

        private let state: Mutex<State>

        init(_ frames: [[UInt8]]) { state = Mutex(State(frames: frames)) }

        func send(_ messages: [[UInt8]]) async throws {
            await untilClosed()
            throw LoveseatError(.webSocketAbnormalClose, "the connection is closed")
        }

        func receive() async throws -> [[UInt8]]? {
            let frames = state.withLock { state in
                defer { state.frames = [] }
                return state.frames
            }
            if !frames.isEmpty { return frames }
            for observer in state.withLock({ state in
                state.readsAgain = true
                defer { state.observers = [] }
                return state.observers
            }) { observer.resume() }
            await untilClosed()
            return nil
        }

        /// Returns when its peer, having taken all frames, wants more.
        func isRead() async {
            await withCheckedContinuation { continuation in
                let isDone = state.withLock { state in
                    if !state.readsAgain { state.observers.append(continuation) }
                    return state.readsAgain
                }
                if isDone { continuation.resume() }
            }
        }

        private func untilClosed() async {
            await withCheckedContinuation { continuation in
                let isDone = state.withLock { state in
                    if !state.isClosed { state.waiters.append(continuation) }
                    return state.isClosed
                }
                if isDone { continuation.resume() }
            }
        }

        func close(code: Int, reason: String) async {
            let waiters = state.withLock { state in
                state.isClosed = true
                defer { state.waiters = [] }
                return state.waiters
            }
            for waiter in waiters { waiter.resume() }
        }
    }

    @Test(arguments: [true, false])
    func `a peer that reads none of its answers is read on, and left when somebody stops`(_ asksBlobs: Bool)
        async throws
    {
        let blob = try far.saveBlob([UInt8](repeating: 7, count: 1 << 20))
        try there.save(Document(id: "d", ["blob": blob.json]))
        let (client, peers, end) = serve()
        let checkpoint = #"{"x":"\#(String(repeating: "x", count: 60_000))"}"#
        try await client.ask([
            Message(["Profile": "setCheckpoint", "client": "cp-x"], body: Array(checkpoint.utf8))
        ])
        let connection = BLIPConnection()
        for number in 0..<600 {
            let question: MessageProperties =
                asksBlobs
                ? ["Profile": "getAttachment", "digest": blob.digest.text]
                : ["Profile": "getCheckpoint", "client": "cp-x"]
            try connection.send(Message(question), tag: BLIPConnection.Tag(number))
        }
        var frames: [[UInt8]] = []
        while let frame = try connection.nextFrame() { frames.append(frame) }
        let channel = DeafChannel(frames)
        let deaf = Task { await peers.serve(PeerConnection(channel: channel, negotiated: .mobile3)) }
        await channel.isRead()
        await peers.stop()
        _ = await deaf.value
        _ = await end.value
    }

    @Test func `a peer that asks for ever and reads nothing is left`() async throws {
        let (client, peers, end) = serve()
        let checkpoint = #"{"x":"\#(String(repeating: "x", count: 60_000))"}"#
        try await client.ask([
            Message(["Profile": "setCheckpoint", "client": "cp-x"], body: Array(checkpoint.utf8))
        ])
        let connection = BLIPConnection()
        for number in 0..<25_000 {
            let question = Message(["Profile": "getCheckpoint", "client": "cp-x"])
            try connection.send(question, tag: BLIPConnection.Tag(number))
        }
        var frames: [[UInt8]] = []
        while let frame = try connection.nextFrame() { frames.append(frame) }
        let channel = DeafChannel(frames)
        let failure = await peers.serve(PeerConnection(channel: channel, negotiated: .mobile3))
        #expect(failure?.code == .remoteError)
        await peers.stop()
        _ = await end.value
    }

    // MARK: Bodies that are too much for memory

    @Test func `what a file keeps comes back as it was, whatever else it keeps`() throws {
        let file = SpillFile(folder: scratch.path)
        var kept: [UInt64: [UInt8]] = [:]
        var generator = SeededGenerator(seed: 3)
        for round in 0..<400 {
            let key = UInt64(generator.int(0...20))
            if generator.chance(0.7) {
                let bytes = generator.bytes(generator.int(0...100_000))
                try file.append(bytes, to: key)
                kept[key, default: []] += bytes
            } else if generator.chance(0.5) {
                #expect(try file.remove(key) == kept.removeValue(forKey: key) ?? [], "round \(round)")
            } else {
                file.drop(key)
                kept[key] = nil
            }
        }
        for (key, bytes) in kept { #expect(try file.remove(key) == bytes) }
        // It has no name that anybody could find.
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: scratch.path).allSatisfy {
                !$0.contains("spill")
            }
        )
    }

    @Test func `a folder that takes no file is an error that names it`() {
        let file = SpillFile(folder: "\(scratch.path)/nowhere")
        let error = #expect(throws: LoveseatError.self) { try file.append([1], to: 1) }
        #expect(error?.code == .init(Int(ENOENT), domain: .posix))
        #expect(error?.message.contains("nowhere") == true)
    }

    // MARK: Filters

    @Test func `a filter under another version looks at all documents again`() async throws {
        for number in 0..<10 { try there.save(Document(id: "d\(number)", ["n": JSONValue(number)])) }
        func pull(below limit: Int, _ version: String?) async -> UInt64 {
            var entry = CollectionConfiguration(collection: here)
            entry.pullFilter = { document, _ in document["n"]?.int ?? 0 < limit }
            entry.filterVersion = version
            var configuration = ReplicatorConfiguration(
                collections: [entry],
                target: DatabaseEndpoint(database: far)
            )
            configuration.replicatorType = .pull
            let replicator = Replicator(configuration)
            replicator.start()
            _ = await replicator.waitUntilStopped()
            return here.count
        }
        #expect(await pull(below: 3, "3") == 3)
        // Under the same name nobody can tell that it lets more through.
        #expect(await pull(below: 7, "3") == 3)
        #expect(await pull(below: 7, "7") == 7)
        #expect(await pull(below: 10, nil) == 10)
    }
}
