import ArgumentParser
import Foundation
import Loveseat

struct Changes: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "List changes in order: sequence, ID, revision.",
        discussion: "EXAMPLE\n  loveseat changes trips --since 120 --follow"
    )

    @OptionGroup var options: CollectionOptions
    @Option(help: "Only changes after this sequence.")
    var since: UInt64 = 0
    @Flag(name: [.short, .long], help: "Keep listing changes as they happen, in any process.")
    var follow = false
    @Flag(help: "Print one JSON object per line.")
    var json = false

    func run() async throws {
        if follow { Signals.begin() }
        let (database, collection) = try options.read()
        var last = since
        try show(collection, after: &last)
        if follow { try await Commits.follow(collection) { try show(collection, after: &last) } }
        try await database.close()
    }

    private func show(_ collection: Loveseat.Collection, after last: inout UInt64) throws {
        for change in try CollectionHistory(collection).changes(since: last) {
            last = change.sequence
            if json {
                try Output.standard.line([
                    "sequence": JSONValue(change.sequence), "id": .string(change.id),
                    "revision": .string(change.revision.text), "deleted": .bool(change.isDeleted),
                ])
            } else {
                let (sequence, revision) = ("\(change.sequence)", change.revision.text)
                if change.isDeleted {
                    try Output.standard.fields(sequence, change.id, revision, "deleted")
                } else {
                    try Output.standard.fields(sequence, change.id, revision)
                }
            }
        }
        try Output.standard.flush()
    }
}
