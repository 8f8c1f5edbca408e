import Foundation
import Testing

/// What is said of arguments that the parser refuses.
struct UsageErrorTests {
    private let folder: CommandLineFolder

    init() throws {
        folder = try CommandLineFolder()
        try folder.run("create", "db")
    }

    @Test(arguments: [
        (["ls"], "missing expected argument '<database>'", "ls"),
        (["ls", "db", "--bogus"], "unknown option '--bogus'", "ls"),
        (["ls", "db", "--limit", "x"], "the value 'x' is invalid for '--limit <limit>'", "ls"),
        (["identity", "create"], "missing expected argument '<label>'", "identity create"),
        (["export", "db", "--create-target"], "options for logging in need --to-couchdb", "export"),
    ])
    func `the last line says what is wrong with the arguments, and which help explains them`(
        _ arguments: [String],
        _ sentence: String,
        _ command: String
    ) throws {
        let outcome = try folder.run(arguments)
        #expect(outcome.status == 64)
        let last = try #require(outcome.errors.split(separator: "\n").last)
        #expect(last.hasPrefix("loveseat: "), "\(outcome.errors)")
        #expect(last.contains(sentence), "\(outcome.errors)")
        #expect(last.hasSuffix(": see `loveseat \(command) --help`"), "\(outcome.errors)")
        #expect(outcome.errors.contains("Usage: loveseat \(command) "), "\(outcome.errors)")
    }

    @Test(arguments: [
        (["ls", "db", "--limit", "-1"], "the limit -1 is negative: use 0 or more"),
        (["compact", "db", "--tombstones", "-1d"], "--tombstones must be 0 or a higher number"),
        (["changes", "db", "--since", "-1"], "the value '-1' is invalid for '--since <since>'"),
        (["pair", "show", "db", "--seconds", "-1"], "--seconds must be 1 to 86400"),
        (["identity", "create", "x", "--days", "-1"], "--days is -1: use 1 to 36500"),
        (["sync", "db", "ws://127.0.0.1:1/x", "--max-wait", "-1"], "--max-wait must be 0 or more seconds"),
        (["sync", "db", "ws://127.0.0.1:1/x", "--heartbeat", "-1"], "--heartbeat must be 0 or more seconds"),
    ])
    func `a negative number is a value, and the message says which numbers are possible`(
        _ arguments: [String],
        _ sentence: String
    ) throws {
        let outcome = try folder.run(arguments)
        #expect(outcome.status == 64)
        #expect(outcome.errors.contains(sentence), "\(outcome.errors)")
    }

    @Test func `an ID that begins like a negative number can be an option's value`() throws {
        try folder.run(["import", "db", "-"], input: Data("{\"_id\":\"-5\"} {\"_id\":\"+5\"}".utf8))
        #expect(try folder.run("ls", "db", "--from", "-5").lines == ["-5"])
    }
}
