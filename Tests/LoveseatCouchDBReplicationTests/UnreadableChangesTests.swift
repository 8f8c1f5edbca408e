import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatReplication
import Testing

/// Rows of `_changes` that cannot be read.
struct UnreadableChangesTests {
    /// Rows that are none, each for another reason. All bytes but those of a string's end are balanced, as in every text that is JSON but for
    /// a few characters.
    private static let bad: [[UInt8]] = [
        Array(#"{"seq":7,"id":"x\ud83d","changes":[{"rev":"1-a"}]}"#.utf8),
        Array(#"{"seq":7,"id":"x"#.utf8) + [0xE9] + Array(#"","changes":[]}"#.utf8),
        Array(#"{"seq":7,"id":"x"#.utf8) + [0x01] + Array(#"","changes":[]}"#.utf8),
        Array(#"{"seq":7,"changes":[{"rev":"1-a"}]}"#.utf8),
        Array(#"{"seq":null,"id":"x","changes":[]}"#.utf8),
        Array(#"{"seq":7,"id":5,"changes":[]}"#.utf8), Array(#"{"seq":7,"id":"x","changes":NaN}"#.utf8),
        Array(#"{"seq":7,"id":"x","changes":[],}"#.utf8), Array("{}".utf8), Array("null".utf8),
        Array("17".utf8),
        Array("true".utf8), Array(#""a],}b""#.utf8), Array("[1,[2]]".utf8),
        Array("{\"seq\":7,\"id\":\"x\",\"changes\":".utf8) + [UInt8](repeating: 0x5B, count: 3_000)
            + [UInt8](repeating: 0x5D, count: 3_000) + Array("}".utf8),
    ]

    @Test func `rows that cannot be read are left out and named, in any pieces, and the others are read`()
        throws
    {
        for seed in 0..<300 {
            var random = SeededGenerator(seed: UInt64(seed))
            var text = Array(#"{"results":["#.utf8)
            var (good, places): ([String], [String?]) = ([], [])
            for number in 0..<Int.random(in: 0...12, using: &random) {
                if number > 0 { text += Array(Bool.random(using: &random) ? ",".utf8 : "\n, ".utf8) }
                if Int.random(in: 0..<3, using: &random) == 0,
                    let row = Self.bad.randomElement(using: &random)
                {
                    text += row
                    places.append(good.last)
                } else {
                    text += Array(
                        "{\"seq\":\"\(number)\",\"id\":\"d\(number)\",\"changes\":[{\"rev\":\"1-a\"}]}".utf8
                    )
                    good.append("\(number)")
                }
            }
            text += Array(#"],"last_seq":"99"}"#.utf8)
            var parser = ChangesParser()
            var rows: [RemoteChange] = []
            let size = [1, 3, 17, 100_000].randomElement(using: &random) ?? 1
            for start in stride(from: 0, to: text.count, by: size) {
                rows += try parser.receive(Array(text[start..<min(start + size, text.count)]))
            }
            #expect(rows.map(\.documentID) == good.map { "d\($0)" }, "seed \(seed)")
            #expect(parser.unreadable.map { $0.after?.json.string } == places, "seed \(seed)")
            #expect(try parser.finish().lastSequence?.json == "99", "seed \(seed)")
        }
    }

    /// `ChangesParser.finish` without its look at whether the list was there.
    @Test(arguments: [
        "{}", "[]", "5", "null", "\"results\"", #"{"last_seq":"9"}"#, #"{"last_seq":"9","pending":0}"#,
        #"{"pending":0,"last_seq":9}"#, #"{"results":5,"last_seq":9}"#, #"{"results":{},"last_seq":9}"#,
        #"{"result":[],"last_seq":9}"#, #"{"x":{"results":[]},"last_seq":9}"#,
        #"{"error":"timeout","reason":"the request could not be processed"}"#, "  ", "",
    ]) func `an answer that is JSON, but no list of changes, ends in an error`(_ text: String) {
        for size in [1, 1_000] {
            var parser = ChangesParser()
            let error = #expect(throws: LoveseatError.self) {
                for start in stride(from: 0, to: text.utf8.count, by: size) {
                    _ = try parser.receive(Array(Array(text.utf8).dropFirst(start).prefix(size)))
                }
                _ = try parser.finish()
            }
            #expect(error?.code == (text == "[]" ? .remoteError : .webSocketAbnormalClose))
        }
    }

    /// `ChangesParser.finish` at every place where an answer may be cut.
    @Test func `an answer that is cut anywhere is not taken for a whole one, and keeps its rows`() throws {
        let text = Array(
            #"{"results":[{"seq":"1","id":"a]}","changes":[{"rev":"1-a"}]},{"seq":"2","id":"b","changes":[{"rev":"1-a"}],"doc":{"results":[]}}],"last_seq":"2","pending":0}"#
                .utf8
        )
        for end in text.indices {
            var parser = ChangesParser()
            let rows = try parser.receive(Array(text[..<end]))
            #expect(rows.map(\.documentID) == Array(["a]}", "b"].prefix(rows.count)))
            #expect(parser.unreadable.isEmpty)
            let error = #expect(throws: LoveseatError.self, "\(end)") { try parser.finish() }
            #expect(error?.code == .webSocketAbnormalClose)
        }
        var parser = ChangesParser()
        #expect(try parser.receive(text).count == 2)
        let end = try parser.finish()
        #expect(end.lastSequence?.text == "\"2\"")
        #expect(end.pending == 0)
        // An answer without a place to go on from is whole.
        parser = ChangesParser()
        _ = try parser.receive(Array(#"{"results":[],"last_seq":null}"#.utf8))
        #expect(try parser.finish() == ChangesParser.End(lastSequence: nil))
    }

    @Test func `a checkpoint remembers where rows could not be read`() throws {
        var checkpoint = RemoteCheckpoint()
        let places = [nil, RemoteSequence(7), RemoteSequence(json: "\"8-x\""), nil]
        checkpoint.advance(to: RemoteSequence(9), past: places)
        let read = RemoteCheckpoint(JSONElement(checkpoint.json(time: 0)))
        #expect(read.unreadable == [nil, RemoteSequence(7), RemoteSequence(json: "\"8-x\"")])
        var theirs = RemoteCheckpoint()
        theirs.advance(to: RemoteSequence(9))
        #expect(read.joined(with: theirs).unreadable == read.unreadable)
        // What was not passed need not be remembered.
        #expect(read.joined(with: RemoteCheckpoint()).unreadable.isEmpty)
    }

    @Test func `an answer is not read beyond as many rows as are remembered`() throws {
        var parser = ChangesParser()
        var text = Array(#"{"results":[{"seq":1,"id":"a","changes":[{"rev":"1-a"}]}"#.utf8)
        for _ in 0...ChangesQuery.pageSize { text += Array(",{}".utf8) }
        text += Array(#",{"seq":900,"id":"b","changes":[{"rev":"1-a"}]}],"last_seq":900}"#.utf8)
        let rows = try parser.receive(text)
        #expect(rows.map(\.documentID) == ["a"])
        #expect(parser.isFull)
        #expect(parser.unreadable.count == ChangesQuery.pageSize)
        let full = parser
        let error = #expect(throws: LoveseatError.self) { try full.finish() }
        #expect(error?.code == .remoteError)
    }

    @Test func `a checkpoint does not pass a row for which it has no room`() {
        var checkpoint = RemoteCheckpoint()
        let places = (1...99 as ClosedRange<UInt64>).map { RemoteSequence($0) }
        checkpoint.advance(to: RemoteSequence(199), past: places)
        checkpoint.advance(to: RemoteSequence(200), past: [RemoteSequence(50), RemoteSequence(100)])
        #expect(!checkpoint.isHeld)
        checkpoint.advance(to: RemoteSequence(300), past: [RemoteSequence(201)])
        checkpoint.advance(to: RemoteSequence(400))
        #expect(checkpoint.isHeld)
        #expect(checkpoint.checkpoint.remote == RemoteSequence(200))
        // The next session goes on from there.
        var next = RemoteCheckpoint(JSONElement(checkpoint.json(time: 0)))
        #expect(next.unreadable.count == 100)
        #expect(!next.isHeld)
        #expect(!next.unreadable.contains(RemoteSequence(201)))
        next.replaceUnreadable(RemoteSequence(1), with: [RemoteSequence(1), RemoteSequence(2)])
        #expect(next.unreadable.count == 100)
        #expect(next.unreadable.contains(RemoteSequence(1)))
        // Two places do not fit into the room of one.
        next.replaceUnreadable(RemoteSequence(1), with: [RemoteSequence(400), RemoteSequence(401)])
        #expect(next.unreadable.contains(RemoteSequence(1)))
        #expect(!next.unreadable.contains(RemoteSequence(400)))
        next.replaceUnreadable(RemoteSequence(1), with: [RemoteSequence(400)])
        #expect(!next.unreadable.contains(RemoteSequence(1)))
        next.replaceUnreadable(RemoteSequence(400), with: [])
        next.advance(to: RemoteSequence(300), past: [RemoteSequence(201)])
        #expect(next.checkpoint.remote == RemoteSequence(300))
    }

    @Test func `names of fields are divided at dots, byte by byte`() {
        let accent = "\u{0301}"
        #expect(Selector.names(in: "a.\(accent)b") == ["a", ExactText("\(accent)b")])
        #expect(Selector.names(in: "a\\.\(accent)b\\c\\") == [ExactText("a.\(accent)b\\c\\")])
        for path in ["a", "a.b", "a\\.b.c", ".", "", "é.e\(accent)"] {
            #expect(Selector.text(of: Selector.names(in: path)).isExactly(path))
        }
    }

    @Test func `a name with backslashes in front of a dollar sign has one more in a path`() {
        for name in ["$x", "\\$x", "\\\\$x", "\\\\\\$", "a\\b", "\\a$", "\\", "\\\\"] {
            for path in [[name], ["a", name], [name, "b.$"]] where path.count == 1 || name != "\\" {
                let path = path.map { ExactText($0) }
                #expect(Selector.names(in: Selector.text(of: path)) == path, "\(path)")
            }
        }
        #expect(Selector.names(in: "a.\\\\$x") == ["a", "\\$x"])
    }
}
