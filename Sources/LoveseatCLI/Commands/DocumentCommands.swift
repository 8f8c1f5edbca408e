import ArgumentParser
import Foundation
import Loveseat

struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ls",
        abstract: "List the IDs of documents.",
        discussion: """
            IDs are in order of their bytes. Ranges include both ends.

            EXAMPLES
              loveseat ls trips --prefix paris:
              loveseat ls trips --recent --limit 10
              loveseat ls trips --where "city = 'Paris' AND likes > 3"
            """,
        aliases: ["list"]
    )

    @OptionGroup var options: CollectionOptions
    @Option(help: "Only IDs that begin with this text.")
    var prefix = ""
    @Option(help: "The lowest ID.")
    var from: String?
    @Option(help: "The highest ID.")
    var through: String?
    @Flag(help: "Those that changed last come first.")
    var recent = false
    @Flag(help: "In descending order; with --recent, those that changed last come last.")
    var reverse = false
    @Option(help: "The maximum number of documents.")
    var limit: Int?
    @Option(help: "Only documents that meet this condition in SQL++.")
    var `where`: String?
    @Flag(name: [.short, .long], help: "Show revision, sequence and size too.")
    var long = false
    @Flag(help: "Print one JSON object per line.")
    var json = false

    func run() async throws {
        let (database, collection) = try options.read()
        let listing = DocumentListing(
            prefix: prefix,
            from: from,
            through: through,
            order: recent ? .sequence : .id,
            descending: recent != reverse,
            limit: limit
        )
        if let condition = self.where {
            try await list(listing, where: condition, in: collection)
        } else {
            for try await document in collection.documentStream(listing) { try show(document) }
        }
        try await database.close()
    }

    private func list(
        _ listing: DocumentListing,
        where condition: String,
        in collection: Loveseat.Collection
    ) async throws {
        let order = "\(recent ? "meta().sequence" : "meta().id") \(listing.isDescending ? "DESC" : "ASC")"
        let query = try Query(idsIn: collection, where: condition, order: order)
        var left = limit ?? .max
        for try await row in query.rows() {
            if left <= 0 { return }
            guard let id = row.documentID, listing.mayContain(id) else { continue }
            guard let document = try collection.document(id: id) else { continue }
            try show(document)
            left -= 1
        }
    }

    private func show(_ document: Document) throws {
        let bytes = document.json.bytes.count
        if json {
            try Output.standard.line([
                "id": .string(document.id),
                "revision": .string(document.revisionID?.text ?? ""),
                "sequence": JSONValue(document.sequence),
                "bytes": JSONValue(bytes),
            ])
        } else if long {
            let revision = document.revisionID?.text ?? ""
            try Output.standard.fields(document.id, revision, "\(document.sequence)", "\(bytes)")
        } else {
            try Output.standard.line(document.id)
        }
    }
}

struct Get: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print a document.",
        discussion: """
            EXAMPLE
              loveseat get trips tower --rev 2-9f86
            """
    )

    @OptionGroup var options: CollectionOptions
    @Argument(help: "The document's ID.", completion: .documentID)
    var id: String
    @Option(help: "A revision other than the current one, if it is still kept. \(RevisionArgument.help)")
    var rev: String?
    @Flag(help: "Print the document as stored, instead of indented and sorted.")
    var raw = false

    func run() throws {
        let (database, collection) = try options.read()
        let text: JSONText
        if let rev {
            let known = try collection.requiring(id) { try CollectionHistory(collection).revisions(of: id) }
            let hint = "revs"
            guard let revision = try RevisionArgument.revision(rev, of: id, among: known, hint: hint) else {
                throw LoveseatError(.notFound, "\"\(id)\" has no revision \(rev): see `loveseat \(hint)`")
            }
            text = try CollectionHistory(collection).body(of: id, revision: revision)
        } else {
            text = try options.document(id).2.json
        }
        if raw {
            try Output.standard.stored(text.bytes)
        } else {
            try Output.standard.json(Self.indented(text))
        }
        try database.close()
    }

    /// For people: keys in order, two spaces a level.
    static func indented(_ text: JSONText) -> String {
        func write(_ value: JSONValue, _ level: Int) -> String {
            let inner = String(repeating: "  ", count: level + 1)
            let outer = String(repeating: "  ", count: level)
            switch value {
            case .array(let items) where !items.isEmpty:
                return "[\n" + items.map { inner + write($0, level + 1) }.joined(separator: ",\n")
                    + "\n\(outer)]"
            case .object(let members) where !members.isEmpty:
                let lines = members.sorted { ExactText($0.key) < ExactText($1.key) }.map {
                    "\(inner)\(JSONValue.string($0.key)): \(write($0.value, level + 1))"
                }
                return "{\n" + lines.joined(separator: ",\n") + "\n\(outer)}"
            case .null, .bool, .number, .string, .array, .object: return value.description
            }
        }
        return write(JSONElement(text).value, 0)
    }
}

struct Put: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Save a document, replacing an existing one.",
        discussion:
            "EXAMPLES\n  loveseat put trips tower '{\"likes\":3}'\n  loveseat put trips tower < tower.json"
    )

    @OptionGroup var options: CollectionOptions
    @Argument(help: "The document's ID.", completion: .documentID)
    var id: String
    @Argument(help: "The document, a JSON object; read from standard input if omitted.")
    var json: String?
    @Option(
        help: "The revision to replace, or its version; nothing is saved if the document has another one."
    )
    var rev: String?

    func run() throws {
        let text = try json.map { Array($0.utf8) } ?? Self.standardInput()
        let document: Document
        do { document = try LoveseatError.ofInput { try Document(id: id, json: text) } } catch {
            throw json.flatMap { Self.fileHint($0, id: id, error) } ?? error
        }
        try options.creating { try save(document, in: $1) }
    }

    private static func standardInput() throws -> [UInt8] {
        var text: [UInt8] = []
        try FileSource("-").forEachPiece { text += $0 }
        return text
    }

    private func save(_ given: Document, in collection: Loveseat.Collection) throws {
        var document = given
        let stored = try collection.document(id: id)
        if let rev {
            let conflict = LoveseatError(
                .conflict,
                "\"\(id)\" is not at revision \(rev): see `loveseat revs`"
            )
            let names = [stored?.revisionID?.text, stored?.version?.text].compactMap(\.self)
            guard var changed = stored, names.contains(where: { $0.isExactly(rev) }) else { throw conflict }
            changed.properties = document.properties
            let isSaved = try LoveseatError.ofInput {
                try collection.save(&changed, concurrencyControl: .failOnConflict)
            }
            guard isSaved else { throw conflict }
            document = changed
        } else {
            try LoveseatError.ofInput { try collection.save(&document) }
        }
        try Output.standard.line(document.revisionID?.text ?? "")
        if stored == nil, let meant = collection.probablyMeant(by: id) {
            Output.notice("loveseat: created the document \"\(id)\": did you mean \"\(meant)\"?")
        }
    }

    /// The error of an argument that is not JSON, but names a file.
    private static func fileHint(_ argument: String, id: String, _ error: any Error) -> LoveseatError? {
        guard let error = error as? LoveseatError,
            argument.hasSuffix(".json") || access(argument, F_OK) == 0
        else { return nil }
        return LoveseatError(
            error.code,
            "\(argument) is not JSON: to save what the file \(argument) contains, write < \(argument.shellWord)"
        )
    }
}

struct Set: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Change properties of a document.",
        discussion: """
            A path consists of names and positions: address.lines[0]. A value that is not JSON is stored as text; an empty \
            value removes the property.

            EXAMPLE
              loveseat set trips tower likes=4 address.city=Paris 'tags=["high"]' old=
            """
    )

    @OptionGroup var options: CollectionOptions
    @Argument(help: "The document's ID.", completion: .documentID)
    var id: String
    @Argument(help: "path=value")
    var changes: [String]
    @Flag(help: "Create the document, the collection and the database if they do not exist.")
    var create = false

    func run() throws {
        let changes = try changes.map { change in
            guard let change = PropertyPath.change(change) else {
                throw LoveseatError(.invalidParameter, "\"\(change)\" is not path=value")
            }
            return change
        }
        let advice = "use --create to create it"
        if create { return try options.creating { try make(changes, in: $1, advice: advice) } }
        let (database, collection) = try options.open(advice: advice)
        try make(changes, in: collection, advice: advice)
        try database.close()
    }

    private func make(
        _ changes: [(PropertyPath, JSONValue?)],
        in collection: Loveseat.Collection,
        advice: String
    ) throws {
        let stored = try collection.document(id: id)
        guard var document = stored ?? (create ? Document(id: id) : nil) else {
            throw collection.absence(of: id, advice: advice)
        }
        var value = JSONValue.object(document.properties)
        try LoveseatError.ofInput {
            for (path, new) in changes { try path.set(new, in: &value) }
            document.properties = value.object ?? [:]
            try collection.save(&document)
        }
        try Output.standard.line(document.revisionID?.text ?? "")
    }
}

struct Remove: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rm",
        abstract: "Delete documents. The deletion replicates.",
        aliases: ["delete"]
    )

    @OptionGroup var options: CollectionOptions
    @Argument(help: "The documents' IDs.", completion: .documentID)
    var ids: [String]

    func run() throws {
        try options.change(ids, failure: "nothing was deleted") { transaction, collection, id in
            guard let document = try transaction.document(id: id, in: collection) else {
                throw LoveseatError(.notFound, "there is no document \"\(id)\"")
            }
            try transaction.delete(document, in: collection)
        }
    }
}

struct Purge: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Remove documents from this database, with all their versions. Other databases keep them."
    )

    @OptionGroup var options: CollectionOptions
    @Argument(help: "The documents' IDs.", completion: .documentID)
    var ids: [String]

    func run() throws {
        try options.change(ids, failure: "nothing was purged") { transaction, collection, id in
            try transaction.purge(id: id, in: collection)
        }
    }
}
