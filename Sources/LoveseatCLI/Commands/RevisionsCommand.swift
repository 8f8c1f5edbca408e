import ArgumentParser
import Foundation
import Loveseat

struct Revisions: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revs",
        abstract: "Show a document's revisions, newest first.",
        discussion:
            """
            Prints the ID, the parent and the flags of each revision. A leaf has no children. A candidate was neither superseded nor \
            given up. A closed revision was given up by a peer that knew it. One in conflict waits for the app's resolver. A copy \
            repeats another revision for a peer that accepts only descendants of its current one. If a document has several \
            lines, the origin is the first revision of the line.

            Peers of Couchbase Lite 4 name revisions by versions. A revision with a version has it as its fourth field, the \
            version's time as the fifth, and "own" as the sixth if this database made the version, by the source that it has now. The lines below list the \
            two versions of which it was merged, if it is a merge, and the previous ones, the last of each other database. Where \
            Couchbase Lite 4 writes * as the source of its own versions, the source is written out. A version by \
            Revision+Tree+Encoding stands for a revision without a version, and has the beginning of that revision's ID instead of a time. A derived ID \
            was made from the version, because the revision came from a peer that has no revision IDs.

            With --json, a revision with a version also has "version", "time", "isOwn", "merged" and "previous".
            """
    )

    @OptionGroup var options: CollectionOptions
    @Argument(help: "The document's ID.", completion: .documentID)
    var id: String
    @Flag(help: "Print one JSON object per line.")
    var json = false

    func run() throws {
        let (database, collection) = try options.read()
        let history = CollectionHistory(collection)
        let revisions = try collection.requiring(id) { try history.revisions(of: id) }
        let source = revisions.contains { $0.vector != nil } ? try history.source() : nil
        for revision in revisions {
            if json { try printJSON(revision, source) } else { try printText(revision, source) }
        }
        try database.close()
    }

    private func printJSON(_ revision: CollectionHistory.TreeRevision, _ own: SourceID?) throws {
        var object: JSONObject = [
            "revision": .string(revision.id.text),
            "parent": revision.parent.map { .string($0.text) } ?? .null,
            "flags": .array(revision.flags.map { .string($0) }),
            "copyOf": revision.original.map { .string($0.text) } ?? .null,
            "origins": .array(revision.origins.map { .string($0.text) }),
        ]
        revision.addVersions(to: &object)
        if let version = revision.vector?.current {
            object["isOwn"] = .bool(version.source == own)
            object["time"] = version.dateText.map { .string($0) } ?? .null
        }
        try Output.standard.line(JSONValue.object(object))
    }

    private func printText(_ revision: CollectionHistory.TreeRevision, _ own: SourceID?) throws {
        var words = revision.flags
        if let original = revision.original { words.append("copy of \(original)") }
        if !revision.origins.isEmpty {
            words.append("origin " + revision.origins.map(\.text).joined(separator: " and "))
        }
        func fields(_ version: Version) -> [String] {
            [version.text, version.timeText] + (version.source == own ? ["own"] : [])
        }
        let head = [revision.id.text, revision.parent?.text ?? "-", words.joined(separator: " ")]
        try Output.standard.fields(head + (revision.vector?.current.map(fields) ?? []))
        for version in revision.vector?.mergeVersions ?? [] {
            try Output.standard.fields(["", "merged"] + fields(version))
        }
        for version in revision.vector?.previous ?? [] {
            try Output.standard.fields(["", "previous"] + fields(version))
        }
    }
}

extension Version {
    /// The time as a date, to the millisecond; nil for a version that stands for a revision without one.
    fileprivate var dateText: String? {
        if source == .revisionTree { return nil }
        // Foundation's own fraction is a millisecond too low for half of all times.
        let second = Date(timeIntervalSince1970: Double(time / 1_000_000_000)).formatted(.iso8601)
        let milliseconds = String(time / 1_000_000 % 1_000 + 1_000).dropFirst()
        return "\(second.dropLast()).\(milliseconds)Z"
    }

    /// The time as a date; or the beginning of the ID of the revision for which the version stands, 10 digits of the digest.
    fileprivate var timeText: String {
        if let dateText { return dateText }
        let digest = String(time & 0xFF_FFFF_FFFF, radix: 16)
        return "\(time >> 40)-" + String(repeating: "0", count: 10 - digest.count) + digest
    }
}
