import Foundation
import LoveseatTesting
import Testing

/// The deepest document that can be saved goes wherever any other goes, and a deeper one nowhere.
struct DeepDocumentTests {
    private static let deepest = 128

    /// A document of so many levels.
    private static func text(_ levels: Int, _ value: String = "1", id: String? = nil) -> String {
        let inner =
            String(repeating: #"{"a":"#, count: levels - 1) + value
            + String(repeating: "}", count: levels - 1)
        return (id.map { #"{"_id":"\#($0)","# } ?? "{") + #""a":"# + inner + "}"
    }

    private let folder: CommandLineFolder

    init() throws { folder = try CommandLineFolder() }

    @Test func `import takes documents of 128 levels, and refuses deeper ones, whatever they are in`() throws
    {
        for levels in [Self.deepest - 2, Self.deepest, Self.deepest + 1, Self.deepest + 2] {
            let document = Self.text(levels, id: "d")
            let files = [
                (document, ["file"]), ("[\(document)]", ["file"]),
                (#"{"x":[\#(document)]}"#, ["file", "--array", "x"]),
                (#"{"d":\#(Self.text(levels))}"#, ["file", "--keyed"]),
                (document, ["--from-couchdb", "file"]),
                ("[\(document)]", ["--from-couchdb", "file"]),
                (#"{"docs":[\#(document)]}"#, ["--from-couchdb", "file"]),
                (#"{"rows":[{"id":"d","key":"d","doc":\#(document)}]}"#, ["--from-couchdb", "file"]),
            ]
            for (number, (text, options)) in files.enumerated() {
                let database = "db\(levels)-\(number)"
                try folder.write(text, to: "file")
                let made = try folder.run(["import", database] + options)
                guard levels <= Self.deepest else {
                    #expect(made.status == 65, "\(levels) levels, file \(number)")
                    continue
                }
                #expect(made.status == 0, "\(levels) levels, file \(number): \(made.errors)")
                #expect(try folder.run("get", database, "d", "--raw").lines == [Self.text(levels)])
                let exported = try folder.run("export", database, "--revisions").output
                try folder.write(exported, to: "export")
                #expect(try folder.run("import", database + "copy", "export").status == 0)
                #expect(try folder.run("export", database + "copy", "--revisions").output == exported)
            }
        }
    }

    @Test(arguments: [["--couchdb"], []])
    func `documents of 128 levels are pushed and pulled, also in conflict`(_ wire: [String]) throws {
        for levels in Self.deepest - 8...Self.deepest {
            for (database, value) in [("a", "1"), ("b", "2")] {
                #expect(try folder.run("put", database, "d\(levels)", Self.text(levels, value)).status == 0)
                #expect(
                    try folder.run("put", database, "\(database)\(levels)", Self.text(levels, value)).status
                        == 0
                )
            }
        }
        let server = try folder.serve("b", ["--no-tls"] + wire, environment: [:]).server
        let url = wire.isEmpty ? server.url : "http://127.0.0.1:\(server.port)/b"
        for _ in 0..<2 {
            let pass = try folder.run("sync", "a", url)
            #expect(pass.status == 0, "\(pass.errors)")
        }
        #expect(server.interrupt() == 0)
        let first = try folder.run("export", "a").output
        #expect(first == (try folder.run("export", "b").output))
        #expect(first.split(separator: "\n").count == 27)
    }
}
