import Foundation
import LoveseatTesting
import Testing

/// The model of Couchbase Lite 4 against what real peers said and had (Tests/Fixtures/wire-v4).
struct LiteReplayTests {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Fixtures/wire-v4")

    /// All recordings, by their names.
    static let names: [String] = {
        let files = try? FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        return (files ?? []).map(\.lastPathComponent).filter { $0.hasSuffix(".trace.jsonl") }
            .map { String($0.dropLast(12)) }.sorted()
    }()

    private static func differences(_ name: String, _ change: (String) -> String = { $0 }) throws -> [String]
    {
        LiteReplay.differences(in: try recording(name, change))
    }

    /// Reads a recording.
    static func recording(_ name: String, _ change: (String) -> String = { $0 }) throws -> LiteRecording {
        func text(_ suffix: String) throws -> String {
            try String(contentsOf: folder.appending(path: "\(name).\(suffix)"), encoding: .utf8)
        }
        return try LiteRecording(
            trace: text("trace.jsonl"),
            expected: change(text("expected.json"))
        )
    }

    @Test
    func `there are recordings`() { #expect(Self.names.count == 79) }

    @Test(arguments: names)
    func `both sides say and have what the real peers did`(_ name: String) throws {
        let differences = try Self.differences(name)
        #expect(differences.isEmpty, "\(name): \(differences.prefix(3).joined(separator: "\n"))")
    }

    /// The releases differ in whole vectors, in live deletions, in replaced revisions, and in documents that were made anew.
    @Test(arguments: ["update-pull-41", "live-delete-41", "norev-vectors-41", "recreate-behind-pull-41"])
    func `a model of the other release says something else`(_ name: String) throws {
        let differences = try Self.differences(name) { text in
            text.replacing("\"name\":\"\(name)\"", with: "\"name\":\"\(name.dropLast(3))\"")
        }
        #expect(!differences.isEmpty)
    }

    @Test(arguments: ["\"sequence\":3", "\"n\":3}", "\"deleted\":false", "\"vector\":"])
    func `a document that is not what was recorded is noticed`(_ part: String) throws {
        let differences = try Self.differences("first-both") { text in
            guard let range = text.ranges(of: part).last else { return text }
            return text.replacingCharacters(
                in: range,
                with: part == "\"vector\":" ? "\"gone\":" : other(part)
            )
        }
        #expect(differences.count == 1, "\(differences)")
    }

    private func other(_ part: String) -> String {
        part.replacing("3", with: "4").replacing("false", with: "true")
    }
}
