import Foundation
import Loveseat

/// The rows that need a peer: `BenchmarkPeer`, started beside this program.
public struct PeerRows {
    let scratch: Scratch
    let peer: Process
    let url: URL

    /// Starts the other process, which serves an empty database, or `database` if that is named.
    init(scratch: Scratch, database: String = "far", _ options: [String] = []) throws {
        self.scratch = scratch
        peer = Process()
        let own = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        peer.executableURL = own.deletingLastPathComponent().appending(path: "BenchmarkPeer")
        peer.arguments = [scratch.path, database] + options
        let output = Pipe()
        peer.standardOutput = output
        try peer.run()
        var line = ""
        while !line.contains("\n") {
            let piece = output.fileHandleForReading.availableData
            guard !piece.isEmpty else { fatalError("the listener ended by itself") }
            line += String(decoding: piece, as: UTF8.self)
        }
        guard let url = URL(string: line.trimmingCharacters(in: .whitespacesAndNewlines)) else {
            fatalError("the listener says \(line)")
        }
        self.url = url
    }

    func end() {
        peer.terminate()
        peer.waitUntilExit()
    }

    func configuration(_ collection: Collection, _ type: ReplicatorType) -> ReplicatorConfiguration {
        var configuration = ReplicatorConfiguration(collections: [collection], target: URLEndpoint(url))
        configuration.replicatorType = type
        configuration.maxAttempts = 1
        configuration.acceptOnlySelfSignedServerCertificate = true
        return configuration
    }

    private static func run(
        _ configuration: ReplicatorConfiguration,
        each: (Replicator.Status) -> Void = { _ in }
    ) async throws -> Double {
        let clock = ContinuousClock()
        let start = clock.now
        let replicator = Replicator(configuration)
        replicator.start()
        for await status in replicator.statuses { each(status) }
        if let error = replicator.status.error { throw error }
        return (clock.now - start).inSeconds
    }

    private static func fill(_ collection: Collection, _ count: Int) throws {
        for start in stride(from: 0, to: count, by: 10_000) {
            try collection.database.write { transaction in
                for number in start..<min(count, start + 10_000) {
                    try transaction.save(
                        try Document(id: "doc\(number)", json: sampleText(number)),
                        in: collection
                    )
                }
            }
        }
    }

    private static func rawInsertRate(_ count: Int) throws -> Double {
        let scratch = try Scratch()
        let raw = RawSQLite(path: "\(scratch.path)/raw.sqlite")
        let bodies = (0..<count).map { Array(sampleText($0).utf8) }
        let time = seconds {
            raw.run("BEGIN")
            for (number, body) in bodies.enumerated() { raw.insert("doc\(number)", number, body) }
            raw.run("COMMIT")
        }
        return Double(count) / time
    }

    /// Seconds to push documents to an empty peer, and to pull them from it into an empty database.
    private static func times(_ count: Int, _ options: [String] = []) async throws -> (
        push: Double, pull: Double
    ) {
        let scratch = try Scratch()
        let near = try scratch.database("near")
        try fill(try near.defaultCollection(), count)
        let peer = try PeerRows(scratch: scratch, options)
        var pushing = peer.configuration(try near.defaultCollection(), .push)
        let third = try scratch.database("third")
        var pulling = peer.configuration(try third.defaultCollection(), .pull)
        if options.contains("raw") { (pushing.compressionLevel, pulling.compressionLevel) = (0, 0) }
        let pushed = try await run(pushing)
        let pulled = try await run(pulling)
        peer.end()
        guard try third.defaultCollection().count == count else { fatalError("not everything arrived") }
        try await near.close()
        try await third.close()
        return (pushed, pulled)
    }

    /// TLS against clear connections, and no compression against compression; each pair takes turns three times.
    public static func secured(_ count: Int) async throws -> [Row] {
        var all: [String: [(push: Double, pull: Double)]] = [:]
        for _ in 0..<3 {
            for option in ["clear", "tls", "raw"] {
                all[option, default: []].append(try await times(count, [option]))
            }
        }
        func rates(_ option: String) -> (push: Double, pull: Double) {
            let times = all[option] ?? []
            return (Double(count) / times.map(\.push).median, Double(count) / times.map(\.pull).median)
        }
        let (clear, tls, raw) = (rates("clear"), rates("tls"), rates("raw"))
        return [
            .ratio(
                "push with TLS against without",
                tls.push,
                of: clear.push,
                unit: "documents/s",
                floor: 0.8
            ),
            .ratio(
                "pull with TLS against without",
                tls.pull,
                of: clear.pull,
                unit: "documents/s",
                floor: 0.8
            ),
            .ratio(
                "push without compression against with",
                raw.push,
                of: clear.push,
                unit: "documents/s",
                floor: 1
            ),
            .ratio(
                "pull without compression against with",
                raw.pull,
                of: clear.pull,
                unit: "documents/s",
                floor: 1
            ),
        ]
    }

    public static func pushAndPull(_ count: Int) async throws -> [Row] {
        let raw = try (0..<3).map { _ in try rawInsertRate(count) }.median
        let (pushed, pulled) = try await times(count)
        return [
            .ratio(
                "push, \(count) documents",
                Double(count) / pushed,
                of: raw,
                unit: "documents/s",
                floor: 0.3
            ),
            .ratio(
                "pull, \(count) documents",
                Double(count) / pulled,
                of: raw,
                unit: "documents/s",
                floor: 0.3
            ),
        ]
    }

    /// The second push of changed documents, with deltas and without: seconds and bytes on the way.
    public static func deltas(_ count: Int) async throws -> [Row] {
        func measure(_ usesDeltas: Bool) async throws -> (seconds: Double, saved: Double) {
            let scratch = try Scratch()
            let near = try scratch.database("near")
            let collection = try near.defaultCollection()
            try fill(collection, count)
            let peer = try PeerRows(scratch: scratch, usesDeltas ? ["delta"] : [])
            var configuration = peer.configuration(collection, .push)
            configuration.enableDeltaSync = usesDeltas
            _ = try await run(configuration)
            try await near.write { transaction in
                for number in 0..<count {
                    guard var document = try transaction.document(id: "doc\(number)", in: collection) else {
                        continue
                    }
                    document["likes"] = JSONValue(number + 1)
                    try transaction.save(&document, in: collection)
                }
            }
            var saved = 0.0
            let seconds = try await run(configuration) { saved = Double($0.progress.deltaBytesSaved) }
            peer.end()
            try await near.close()
            return (seconds, saved)
        }
        let (whole, delta) = (try await measure(false), try await measure(true))
        let bytes = Double((0..<count).reduce(0) { $0 + sampleText($1).utf8.count })
        let rate = Double(count)
        return [
            .ratio(
                "push of one changed property with deltas against whole bodies",
                rate / delta.seconds,
                of: rate / whole.seconds,
                unit: "documents/s",
                floor: 0.5
            ),
            .ratio("body bytes that deltas save", delta.saved, of: bytes, unit: "bytes", floor: 0.9),
        ]
    }

    /// Rate, memory and the second sync of many documents.
    public static func flatness(_ count: Int) async throws -> [Row] {
        let scratch = try Scratch()
        let near = try scratch.database("near")
        let collection = try near.defaultCollection()
        try fill(collection, count)
        let peer = try PeerRows(scratch: scratch)
        let clock = ContinuousClock()
        let start = clock.now
        var marks: [(documents: Int, seconds: Double)] = []
        let before = (near: residentBytes(of: getpid()), far: residentBytes(of: peer.peer.processIdentifier))
        var most = before
        _ = try await run(peer.configuration(collection, .push)) { status in
            marks.append((Int(status.progress.documents), (clock.now - start).inSeconds))
            if marks.count % 64 == 0 {
                most.near = max(most.near, residentBytes(of: getpid()))
                most.far = max(most.far, residentBytes(of: peer.peer.processIdentifier))
            }
        }
        func rate(from low: Int, to high: Int) -> Double {
            guard let first = marks.first(where: { $0.documents >= low }),
                let last = marks.last(where: { $0.documents <= high }), last.seconds > first.seconds
            else { return .nan }
            return Double(last.documents - first.documents) / (last.seconds - first.seconds)
        }
        let (early, late) = (rate(from: 1, to: count / 10), rate(from: count * 9 / 10, to: count))
        var again: [Double] = []
        for _ in 0..<5 { again.append(try await run(peer.configuration(collection, .push))) }
        peer.end()
        try await near.close()
        let growth = Double(max(most.near - before.near, most.far - before.far)) / 1e6
        return [
            .ratio(
                "last tenth of \(count) documents against the first",
                late,
                of: early,
                unit: "documents/s",
                floor: 0.8
            ),
            .limit("memory growth of either peer meanwhile", growth, unit: "MB", atMost: 96),
            .limit(
                "re-sync with nothing to do, \(count) documents",
                again.median * 1_000,
                unit: "ms",
                atMost: 50
            ),
        ]
    }

    /// From a save here to its being visible here again, by way of the peer and a second database: half of that.
    public static func latency(_ count: Int) async throws -> Row {
        let scratch = try Scratch()
        let near = try scratch.database("near")
        let third = try scratch.database("third")
        let peer = try PeerRows(scratch: scratch)
        var pushing = peer.configuration(try near.defaultCollection(), .push)
        pushing.continuous = true
        var pulling = peer.configuration(try third.defaultCollection(), .pull)
        pulling.continuous = true
        let replicators = [Replicator(pushing), Replicator(pulling)]
        for replicator in replicators {
            replicator.start()
            for await status in replicator.statuses where status.activity == .idle { break }
        }
        let collection = try near.defaultCollection()
        let arrivals = try third.defaultCollection().changes()
        var iterator = arrivals.makeAsyncIterator()
        let clock = ContinuousClock()
        var times: [Double] = []
        for number in 0..<count {
            let start = clock.now
            try collection.save(try Document(id: "doc\(number)", json: sampleText(number)))
            _ = await iterator.next()
            times.append((clock.now - start).inSeconds)
        }
        for replicator in replicators {
            replicator.stop()
            await replicator.waitUntilStopped()
        }
        peer.end()
        try await near.close()
        try await third.close()
        return .limit(
            "save to visible at the idle peer (half of two hops)",
            times.median / 2 * 1_000,
            unit: "ms",
            atMost: 10
        )
    }

    public static func blob(_ megabytes: Int) async throws -> Row {
        let scratch = try Scratch()
        let near = try scratch.database("near")
        let collection = try near.defaultCollection()
        let file = "\(scratch.path)/content"
        _ = FileManager.default.createFile(atPath: file, contents: nil)
        guard let handle = FileHandle(forWritingAtPath: file) else { fatalError("cannot write \(file)") }
        // Each megabyte is different, and none compresses.
        var state: UInt64 = 88_172_645_463_325_252
        for _ in 0..<megabytes {
            var megabyte: [UInt64] = []
            for _ in 0..<125_000 {
                state ^= state << 13
                state ^= state >> 7
                state ^= state << 17
                megabyte.append(state)
            }
            try handle.write(contentsOf: megabyte.withUnsafeBytes { Data($0) })
        }
        try handle.close()
        let blob = try near.saveBlob(fileURL: URL(filePath: file), contentType: "image/jpeg")
        try collection.save(Document(id: "photo", ["photo": blob.json]))
        let peer = try PeerRows(scratch: scratch)
        let time = try await run(peer.configuration(collection, .push))
        peer.end()
        try await near.close()
        return .speed("blob of \(megabytes) MB", Double(megabytes) / time, unit: "MB/s", atLeast: 150)
    }
}
