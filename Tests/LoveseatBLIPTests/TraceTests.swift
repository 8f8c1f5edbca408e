import Foundation
import LoveseatBLIP
import LoveseatModel
import LoveseatTesting
import Testing

/// Recorded conversations of real peers (Tests/Fixtures/wire).
enum Fixtures {
    static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Fixtures/wire")

    static func lines(_ name: String) throws -> [JSONElement] {
        try Data(contentsOf: folder.appending(path: name)).split(separator: 0x0A).map {
            try JSONElement(parsing: Array($0))
        }
    }
}

@Suite struct TraceTests {
    static let names = [
        "push-50", "pull-50", "both-update-delete", "blob-60k", "conflict-resolve", "collections", "deltas",
        "docids",
        "mobile2", "unknown-collection", "v4-vectors",
    ]

    @Test(arguments: names) func `a trace decodes to its messages and encodes again`(name: String) throws {
        var expected = try Fixtures.lines("\(name).messages.jsonl").filter {
            $0["dir"] != nil && $0["type"] != nil
        }[...]
        var readers: [String: MessageReader] = [:]
        var senders: [String: (FrameEncoder, MessageReader)] = [:]
        for event in try Fixtures.lines("\(name).trace.jsonl") {
            if event["connection"] != nil {
                readers = ["active": MessageReader(), "passive": MessageReader()]
                senders = readers.mapValues { _ in (FrameEncoder(compressionLevel: 6), MessageReader()) }
            }
            guard let text = event["frame"]?.string, let direction = event["dir"]?.string else { continue }
            let bytes = try #require(Data(base64Encoded: text))
            guard let (frame, message, frames) = try readers[direction]?.read(Array(bytes)) else { continue }
            let next = expected.popFirst()
            let line = try #require(next)
            #expect(line["dir"]?.string == direction)
            #expect(line["number"]?.int == Int(frame.number))
            guard let message else {
                var payload = frame.payload
                #expect(line["bytes"]?.int == Int(try payload.readVarInt()))
                continue
            }
            #expect(line["frames"]?.int == frames)
            let properties = message.properties.pairs.map { [JSONValue($0.name), JSONValue($0.value)] }
            #expect(line["properties"]?.value == .array(properties.map { .array($0) }))
            if let body = line["body"]?.string {
                #expect(String(decoding: message.body, as: UTF8.self) == body)
            } else {
                #expect(line["bodyLength"]?.int == message.body.count)
            }
            // The flags recorded are those of the first frame.
            let recorded = FrameFlags(rawValue: UInt64(line["flags"]?.int ?? 0))
            #expect(recorded.contains(.urgent) == message.isUrgent)
            #expect(recorded.contains(.noReply) == message.noReply)

            // Our own encoding of the same message is read back the same by an independent stream.
            guard var (encoder, reader) = senders[direction] else { continue }
            var plain: [UInt8] = []
            plain.appendVarInt(UInt64(message.properties.encoded.count))
            plain += message.properties.encoded + message.body
            let flags: FrameFlags = frame.flags.subtracting(.moreComing)
            var again: Message?
            for start in stride(from: 0, to: plain.count, by: 10_000) {
                let piece = plain[start..<min(start + 10_000, plain.count)]
                let more: FrameFlags = piece.endIndex < plain.count ? .moreComing : []
                let encoded = try encoder.frame(
                    number: frame.number,
                    type: frame.type,
                    flags: flags.union(more),
                    payload: piece
                )
                again = try reader.read(encoded)?.message
            }
            senders[direction] = (encoder, reader)
            #expect(again?.properties == message.properties)
            #expect(again?.body == message.body)
        }
        #expect(expected.isEmpty)
    }
}
