import Foundation
import NIOConcurrencyHelpers
import Testing

/// Two real processes with a bad network between them.
struct BadNetworkTests {
    private static let documents = 60
    private let folder: CommandLineFolder
    private let network: BadNetwork

    init() async throws {
        folder = try CommandLineFolder()
        network = try await BadNetwork()
        for (name, other) in [("a", "b"), ("b", "a")] {
            let lines = (0..<Self.documents / 2).map {
                "{\"_id\":\"\(name)\($0)\",\"n\":\($0),\"text\":\"\(String(repeating: "\(other)\($0) ", count: 30))\"}"
            }
            try folder.write(lines.joined(separator: "\n"), to: "\(name).jsonl")
            try folder.run("import", name, "\(name).jsonl")
            // Blobs that are more than one message long.
            for number in 0..<2 {
                let content = (0..<150_000).map {
                    String(UnicodeScalar(UInt8(97 + ($0 * (7 + number)) % 26)))
                }
                try folder.write(content.joined() + name, to: "file")
                try folder.run("blob", "put", name, "\(name)\(number)", "content", "file")
            }
        }
    }

    private func copy(_ name: String) throws {
        let manager = FileManager.default
        try? manager.removeItem(atPath: "\(folder.path)/\(name)2.loveseat")
        try manager.copyItem(
            atPath: "\(folder.path)/\(name).loveseat",
            toPath: "\(folder.path)/\(name)2.loveseat"
        )
    }

    private func sync() throws -> (status: Int32, documents: Int) {
        let outcome = try folder.run("sync", "a2", "ws://127.0.0.1:\(network.port)/b2", "--json")
        func number(_ key: String) -> Int {
            let part = outcome.output.components(separatedBy: "\"\(key)\":").dropFirst().first ?? ""
            return Int(part.prefix { $0.isNumber }) ?? 0
        }
        return (outcome.status, number("pushed") + number("pulled"))
    }

    /// Syncs once in a mood and once without, and returns the documents that went over in each.
    private func run(_ mood: BadNetwork.Mood) throws -> (first: Int, second: Int, isCut: Bool) {
        try copy("a")
        try copy("b")
        let server = try folder.serve("b2")
        network.target.withLockedValue { $0 = Int(server.port) ?? 0 }
        network.mood.withLockedValue { $0 = mood }
        let first = try sync()
        network.mood.withLockedValue { $0 = .fair }
        let second = try sync()
        #expect(second.status == 0)
        #expect(server.interrupt() == 0)
        #expect(try folder.run("export", "a2").output == folder.run("export", "b2").output, "\(mood)")
        return (first.documents, second.documents, first.status != 0)
    }

    @Test(arguments: 0..<4)
    func `a connection cut anywhere loses nothing and repeats nothing`(_ part: Int) throws {
        let fair = try run(.fair)
        #expect(fair.first == Self.documents)
        #expect(fair.second == 0)
        #expect(!fair.isCut)
        let messages = try {
            try copy("a")
            try copy("b")
            let server = try folder.serve("b2")
            network.target.withLockedValue { $0 = Int(server.port) ?? 0 }
            _ = try sync()
            #expect(server.interrupt() == 0)
            return network.messages.withLockedValue { $0 }
        }()
        #expect(messages > 20)
        var cuts = 0
        for point in 0..<50 {
            // Every boundary, and the middle of every message, in turn.
            let position = (part * 50 + point) * (messages - 1) / 199
            let outcome = try run(.cut(afterMessages: position, isInside: point % 2 == 1))
            #expect(outcome.first + outcome.second <= Self.documents, "cut after \(position) messages")
            if outcome.isCut { cuts += 1 }
        }
        // The last few cuts may come when everything is done.
        #expect(cuts > 35)
    }

    @Test(arguments: ["push", "pull"]) func `an interrupted blob goes on where it was`(_ direction: String)
        throws
    {
        var generator = SystemRandomNumberGenerator()
        let content = Data((0..<5_000_000).map { _ in UInt8.random(in: 0...255, using: &generator) })
        try content.write(to: URL(filePath: "\(folder.path)/photo"))
        let (source, target) = direction == "push" ? ("c", "d") : ("d", "c")
        for name in ["c", "d"] { try folder.run("create", name) }
        try folder.run("blob", "put", source, "photo", "content", "photo", "--type", "image/jpeg")
        let server = try folder.serve("d")
        network.target.withLockedValue { $0 = Int(server.port) ?? 0 }
        let url = "ws://127.0.0.1:\(network.port)/d"
        // Of more than three hundred messages.
        network.mood.withLockedValue { $0 = .cut(afterMessages: 250, isInside: true) }
        #expect(try folder.run(direction, "c", url).status != 0)
        network.mood.withLockedValue { $0 = .fair }
        #expect(try folder.run(direction, "c", url).status == 0)
        #expect(network.messages.withLockedValue { $0 } < 200)
        #expect(server.interrupt() == 0)
        try folder.run("blob", "get", target, "photo", "content", "copy")
        #expect(try Data(contentsOf: URL(filePath: "\(folder.path)/copy")) == content)
    }

    @Test func `a slow, dribbling or doubling network changes nothing`() throws {
        for mood in [BadNetwork.Mood.slow(30), .dribble(7), .dribble(1_000), .double] {
            let outcome = try run(mood)
            // A doubled connection brings documents before the one that is answered does.
            #expect(outcome.second == 0, "\(mood)")
            #expect(!outcome.isCut, "\(mood)")
            #expect(outcome.first <= Self.documents, "\(mood)")
            if mood != .double { #expect(outcome.first == Self.documents) }
        }
    }
}
