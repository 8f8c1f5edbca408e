import Foundation
import LoveseatBLIP
import Testing

/// What peers that mean harm can do to a listener: nothing, within 5 seconds and 64 MB.
struct HostilePeerTests {
    private static let megabyte = [UInt8](repeating: 0x61, count: 1 << 20)

    private struct Attack: Sendable {
        let name: String
        /// Whether the connection ends; else the answer says why not.
        var ends = true
        let body: @Sendable (HostilePeer) -> Bool
    }

    private static func revision(_ history: String, _ id: String = "evil", _ rev: String = "2-bb")
        -> MessageProperties
    {
        ["Profile": "rev", "id": id, "rev": rev, "history": history, "collection": "0"]
    }

    private static let attacks: [Attack] = [
        Attack(name: "a message without an end") { peer in
            peer.request(["Profile": "rev"], [0x7B], ends: false)
            let piece = megabyte.prefix(16_000)
            for _ in 0..<20_000 where !peer.piece(piece, isLast: false) { return true }
            return false
        },
        Attack(name: "many messages without ends") { peer in
            for _ in 0..<20_000
            where !peer.request(["Profile": "rev"], Array(megabyte.prefix(15_000)), ends: false) {
                return true
            }
            return false
        },
        Attack(name: "properties longer than they may be") { peer in
            var head: [UInt8] = []
            head.appendVarInt(1 << 40)
            var encoder = FrameEncoder(compressionLevel: 0)
            let frame = try? encoder.frame(number: 1, type: .request, flags: [], payload: head[...])
            return peer.sendFrame(frame ?? [])
        },
        Attack(name: "a frame that inflates a thousandfold, again and again") { peer in
            let zeros = [UInt8](repeating: 0, count: 1 << 20)
            peer.request(["Profile": "rev"], [0x7B], compressed: true, ends: false)
            for _ in 0..<2_000 where !peer.piece(zeros[...], compressed: true, isLast: false) { return true }
            return false
        },
        Attack(name: "a checksum that is wrong") { peer in
            peer.sendFrame([1, 0, 0, 0, 0, 0, 0, 0])
        },
        Attack(name: "a WebSocket frame that says it is 8 EB long") { peer in
            peer.send([0x82, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0])
        },
        Attack(name: "a WebSocket message of fragments without an end") { peer in
            peer.sendFrame([0], isFinal: false)
            for _ in 0..<20_000
            where !peer.sendFrame(Array(megabyte.prefix(16_000)), opcode: 0, isFinal: false) {
                return true
            }
            return false
        },
        Attack(name: "text") { $0.sendFrame(Array("hello".utf8), opcode: 1) },
        Attack(name: "a million entries in one list") { peer in
            peer.getCollections()
            let entry = #"["d","1-aa"],"#
            let body = "[" + String(repeating: entry, count: 1_000_000).dropLast() + "]"
            peer.request(
                ["Profile": "proposeChanges", "collection": "0"],
                Array(body.utf8),
                compressed: true
            )
            return true
        },
        Attack(name: "a revision that was never asked for", ends: false) { peer in
            peer.getCollections()
            peer.request(revision("1-aa"), Array("{}".utf8))
            return peer.hears("not asked for")
        },
        Attack(name: "JSON a hundred thousand levels deep") { peer in
            let deep = String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000)
            return peer.repeats(revision("1-aa"), Array(#"{"a":\#(deep)}"#.utf8))
        },
        Attack(name: "histories that loop") { $0.repeats(revision("2-bb,1-aa,2-bb"), Array("{}".utf8)) },
        Attack(name: "histories that climb") { $0.repeats(revision("5-aa"), Array("{}".utf8)) },
        Attack(name: "histories that skip") {
            $0.repeats(revision("4-aa,1-aa", "evil", "5-bb"), Array("{}".utf8))
        },
        Attack(name: "document IDs of a megabyte") { peer in
            let id = String(repeating: "x", count: 90_000)
            return peer.repeats(revision("1-aa", id), Array("{}".utf8))
        },
        Attack(name: "collections that were not agreed on") { peer in
            peer.repeats(["Profile": "rev", "id": "d", "rev": "1-aa", "collection": "7"], Array("{}".utf8))
        },
        Attack(name: "blobs whose digests lie") { peer in
            peer.getCollections()
            for number in 1...200 {
                let id = "liar\(number)"
                guard peer.propose(id) else { return true }
                let blob = #"{"@type":"blob","digest":"sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=","length":4}"#
                peer.request(revision("", id, "1-aa"), Array(#"{"photo":\#(blob)}"#.utf8))
                guard peer.hears("getAttachment") else { return true }
                peer.answer(UInt64(number), Array("lies".utf8))
                guard peer.hears("Error-Code") else { return true }
            }
            return false
        },
        Attack(name: "ten thousand questions whose answers nobody reads") { peer in
            peer.getCollections()
            let properties: MessageProperties = [
                "Profile": "getCheckpoint", "client": String(repeating: "c", count: 900), "collection": "0",
            ]
            for _ in 0..<10_000 where !peer.request(properties) { break }
            return true
        },
        Attack(name: "acknowledgements of what was never sent") { peer in
            peer.getCollections()
            for number in 0..<200 as Range<UInt8> { peer.sendFrame([number & 0x7F, 0x05, 0xFF, 0xFF, 0x7F]) }
            return true
        },
    ]

    @Test func `nothing that a peer says costs more than 5 seconds and 64 MB, or harms the database`() throws
    {
        let folder = try CommandLineFolder()
        let photo = [UInt8](unsafeUninitializedCapacity: 20 << 20) { buffer, count in
            var generator = SystemRandomNumberGenerator()
            count = 20 << 20
            for index in stride(from: 0, to: count, by: 8) {
                withUnsafeBytes(of: generator.next()) { bytes in
                    for offset in 0..<8 { buffer[index + offset] = bytes[offset] }
                }
            }
        }
        try Data(photo).write(to: URL(filePath: folder.path + "/photo"))
        try folder.run("blob", "put", "a", "p", "photo", "photo")
        let document = try folder.run("get", "a", "p").output
        let digest = try #require(document.split(separator: "\"").first { $0.hasPrefix("sha1-") }).description
        for number in 0..<50 { try folder.run("put", "a", "d\(number)", "{\"n\":\(number)}") }
        let before = try folder.run("export", "a").output
        let server = try folder.serve("a", "--quiet")
        let port = try #require(UInt16(server.port))
        let process = server.process.processIdentifier
        // A first good peer warms up what is allocated once.
        try folder.run("create", "warm")
        #expect(try folder.run("pull", "warm", server.url).status == 0)
        let greedy = Attack(name: "two hundred copies of a large blob, never acknowledged", ends: false) {
            peer in
            peer.getCollections()
            for _ in 0..<200 {
                peer.request(["Profile": "getAttachment", "digest": digest, "collection": "0"])
            }
            return peer.hears("no such words", within: 1) == false
        }
        for attack in Self.attacks + [greedy] {
            try "5".write(toFile: "/proc/\(process)/clear_refs", atomically: false, encoding: .utf8)
            let start = try Self.memory(process, "VmRSS")
            let peer = try HostilePeer(port: port)
            #expect(attack.body(peer), "\(attack.name): it goes on")
            if attack.ends, attack.name.contains("nobody reads") == false, !attack.name.contains("never sent")
            {
                #expect(peer.isEnded(), "\(attack.name): the connection does not end")
            }
            let growth = try Self.memory(process, "VmHWM") - start
            #expect(growth < 64, "\(attack.name): \(growth) MB")
        }
        for (name, text) in [
            ("a header without an end", "GET / HTTP/1.1\r\nX: " + String(repeating: "x", count: 1 << 20)),
            ("headers without an end", "GET / HTTP/1.1\r\n" + String(repeating: "X: y\r\n", count: 200_000)),
            ("no HTTP", String(repeating: "\u{1}", count: 1 << 20)),
        ] {
            let peer = try HostilePeer(port: port, upgrades: false)
            peer.send(Array(text.utf8))
            #expect(peer.isEnded(), "\(name)")
        }
        // Another peer, meanwhile and afterwards, finds everything as it was.
        try folder.run("create", "b")
        #expect(try folder.run("pull", "b", server.url).status == 0)
        #expect(try folder.run("export", "b").output == before)
        #expect(server.interrupt() == 0)
        #expect(try folder.run("check", "a").status == 0)
        #expect(try folder.run("export", "a").output == before)
    }

    private static func memory(_ process: Int32, _ name: String) throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("\(name):") })
        return try #require(line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) })
            / 1_024
    }
}
