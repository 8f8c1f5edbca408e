import ArgumentParser
import Foundation
import Loveseat

struct CollectionCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "collection",
        abstract: "Delete a collection. `create --collections` creates some, and `info` lists them.",
        subcommands: [DeleteCollection.self]
    )
}

struct DeleteCollection: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete",
        abstract: "Delete a collection with its documents and indexes.",
        discussion: """
            The deletion does not replicate: peers keep the collection. If it has documents, the terminal asks first; without a terminal, use --yes.

            EXAMPLE
              loveseat collection delete trips travel.sights --yes
            """,
        aliases: ["drop", "rm"]
    )

    @OptionGroup var argument: DatabaseArgument
    @Argument(
        help: "The collection: scope.collection, or a collection of the default scope.",
        completion: .custom { Completions.collections($0, $1, $2) }
    )
    var name: String
    @Flag(help: "Do not ask.")
    var yes = false
    @Flag(help: "Print one JSON object: the collection, and the number of documents that were deleted.")
    var json = false

    func run() throws {
        let name = try name.collectionName
        let database = try argument.open()
        guard let collection = try database.collection(name: name.name, scope: name.scope) else {
            throw name.absence(from: database)
        }
        let count = collection.count
        // The default collection cannot be deleted, which needs no question.
        if count > 0, !yes, name != .default {
            let documents = count.counted("document")
            guard Question.isPossible else {
                throw LoveseatError(
                    .invalidParameter,
                    "\(name.fullName) has \(documents): delete it with --yes"
                )
            }
            guard Question.confirms("Delete \(name.fullName) with \(documents)?") else {
                throw LoveseatError(.init(Int(EPERM), domain: .posix), "nothing was deleted")
            }
        }
        try database.deleteCollection(name: name.name, scope: name.scope)
        if json {
            try Output.standard.line([
                "collection": .string(name.fullName), "documents": JSONValue(count),
            ])
        }
        try database.close()
    }
}
