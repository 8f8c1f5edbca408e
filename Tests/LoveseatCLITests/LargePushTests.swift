import Foundation
import LoveseatBLIP
import Testing

/// Peers that send all at once what they were asked for, as gateways do.
struct LargePushTests {
    @Test func `200 documents of a megabyte that come interleaved cost less than 96 MB of memory`() throws {
        let folder = try CommandLineFolder()
        try folder.run("create", "a")
        let server = try folder.serve("a", "--quiet")
        let process = server.process.processIdentifier
        // A first peer warms up what is allocated once.
        try folder.run("put", "warm", "w", "{}")
        #expect(try folder.run("push", "warm", server.url).status == 0)
        try "5".write(toFile: "/proc/\(process)/clear_refs", atomically: false, encoding: .utf8)
        let start = try Self.memory(process, "VmRSS")
        let peer = try HostilePeer(port: try #require(UInt16(server.port)))
        peer.getCollections()
        let entries = (0..<200).map { #"[\#($0 + 1),"d\#($0)","1-aa"]"# }.joined(separator: ",")
        peer.request(["Profile": "changes", "collection": "0"], Array("[\(entries)]".utf8))
        #expect(try peer.answers(2) == [1: true, 2: true])
        let text = String(repeating: "0123456789abcdef", count: 1 << 16)
        let requests: [(properties: MessageProperties, body: [UInt8])] = (0..<200).map { number in
            (
                [
                    "Profile": "rev", "collection": "0", "id": "d\(number)", "rev": "1-aa",
                    "sequence": "\(number + 1)",
                ], Array(#"{"n":\#(number),"text":"\#(text)"}"#.utf8)
            )
        }
        #expect(peer.interleave(requests))
        let answers = try peer.answers(200)
        #expect(answers.count == 200)
        #expect(answers.values.allSatisfy { $0 })
        let growth = try Self.memory(process, "VmHWM") - start
        #expect(growth <= 96, "\(growth) MB")
        #expect(server.interrupt() == 0)
        let last = try folder.run("get", "a", "d199").output
        #expect(last.contains("199"))
        #expect(last.utf8.count > 1 << 20)
    }

    @Test func `another filter fetches what the one before left out`() throws {
        let folder = try CommandLineFolder()
        for number in 0..<6 { try folder.run("put", "a", "d\(number)", #"{"n":\#(number)}"#) }
        let server = try folder.serve("a", "--quiet")
        try folder.run("create", "b")
        func pull(_ filter: String...) throws -> Int {
            try folder.run(["pull", "b", server.url] + filter.flatMap { ["--filter", $0] })
            return try folder.run("ls", "b").output.split(separator: "\n").count
        }
        #expect(try pull("n < 2") == 2)
        #expect(try pull("n < 4") == 4)
        #expect(try pull() == 6)
        #expect(server.interrupt() == 0)
    }

    private static func memory(_ process: Int32, _ name: String) throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("\(name):") })
        return try #require(line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) })
            / 1_024
    }
}
