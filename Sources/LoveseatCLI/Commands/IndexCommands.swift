import ArgumentParser
import Foundation
import Loveseat
import LoveseatAssertions
import LoveseatText

struct IndexCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "index",
        abstract: "Create, list and delete indexes, which make queries fast.",
        subcommands: [CreateIndex.self, ListIndexes.self, DeleteIndex.self]
    )
}

struct CreateIndex: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "create",
        abstract: "Create an index, or replace one of the same name that is defined otherwise.",
        discussion: """
            EXAMPLES
              loveseat index create trips by-city city 'LOWER(name)' --where 'likes > 0'
              loveseat index create trips texts description --full-text --language en
              loveseat index create trips ratings rating --array reviews
            """
    )

    @OptionGroup var options: CollectionOptions
    @Argument(help: "The index's name.")
    var name: String
    @Argument(help: "The expressions in SQL++: none for the items of an array themselves.")
    var expressions: [String] = []
    @Option(help: "The condition of the documents that are in the index.")
    var `where`: String?
    @Flag(help: "An index of the words in texts, for MATCH.")
    var fullText = false
    @Option(
        help: "The language of the texts, such as en.",
        completion: .list(FullTextLanguage.allCases.map(\.rawValue))
    )
    var language: String?
    @Flag(help: "Letters are equal with and without accents.")
    var ignoreAccents = false
    @Option(help: "An index of the items of the array at this path, for UNNEST.")
    var array: String?

    func validate() throws {
        if fullText, array != nil { throw ValidationError("An index is of texts or of an array, not both.") }
        if !fullText, language != nil || ignoreAccents {
            throw ValidationError("--language and --ignore-accents need --full-text.")
        }
        if array != nil, self.where != nil { throw ValidationError("An index of an array has no --where.") }
        if let language, FullTextLanguage(language) == nil {
            let codes = FullTextLanguage.allCases.map(\.rawValue).sorted().joined(separator: ", ")
            throw ValidationError("--language \(language) is not known: use one of \(codes).")
        }
        if array == nil, expressions.isEmpty { throw ValidationError("Name at least one expression.") }
    }

    func run() async throws {
        let (database, collection) = try options.open()
        let configuration = configuration
        let name = name
        // An interrupt leaves everything as it was.
        let creation = Task {
            try await collection.createIndex(configuration, withName: name, progress: ShareLine().show)
        }
        Signals.onInterrupt { creation.cancel() }
        do { try await creation.value } catch is CancellationError {
            throw Interrupted(signal: Signals.interruption ?? SIGINT)
        }
        try await database.close()
    }

    private var configuration: any IndexConfiguration {
        if let array {
            return ArrayIndexConfiguration(path: array, expressions: expressions.isEmpty ? nil : expressions)
        }
        if fullText {
            return FullTextIndexConfiguration(
                expressions,
                where: self.where,
                ignoreAccents: ignoreAccents,
                language: language
            )
        }
        return ValueIndexConfiguration(expressions, where: self.where)
    }
}

struct ListIndexes: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List indexes: name, kind and definition, and the collection if it is not the default one.",
        aliases: ["ls"]
    )

    @OptionGroup var argument: DatabaseArgument
    @Option(
        name: [.short, .long],
        help: "Only this collection: scope.collection, or a collection of the default scope.",
        completion: .custom { Completions.collections($0, $1, $2) }
    )
    var collection: String?
    @Flag(help: "Print one JSON object per line.")
    var json = false

    func run() throws {
        let database = try argument.read()
        for collection in try database.collections(named: collection.map { [try $0.collectionName] } ?? []) {
            for name in try collection.indexes() {
                guard let index = try collection.index(withName: name) else { continue }
                if json {
                    try Output.standard.line(Self.value(of: index, name, in: collection))
                } else {
                    try Output.standard.fields(fields(of: index, name, in: collection))
                }
            }
        }
        try database.close()
    }

    private func fields(of index: any IndexConfiguration, _ name: String, in collection: Loveseat.Collection)
        -> [String]
    {
        var fields = [name]
        var condition: String?
        switch index {
        case let index as ValueIndexConfiguration:
            fields += ["value", index.expressions.joined(separator: ", ")]
            condition = index.where
        case let index as FullTextIndexConfiguration:
            fields += ["full-text", index.expressions.joined(separator: ", ")]
            condition = index.where
            if let language = index.language { fields.append("language \(language)") }
            if index.ignoreAccents { fields.append("ignores accents") }
        case let index as ArrayIndexConfiguration:
            let items = index.expressions.map { ": " + $0.joined(separator: ", ") } ?? ""
            fields += ["array", index.path + items]
        default: impossible("an index has a configuration of an unknown kind: \(type(of: index))")
        }
        if let condition { fields.append("where \(condition)") }
        if self.collection == nil, collection.fullName != "_default._default" {
            fields.append("in \(collection.fullName)")
        }
        return fields
    }

    private static func value(
        of index: any IndexConfiguration,
        _ name: String,
        in collection: Loveseat.Collection
    ) -> JSONValue {
        var value: JSONValue = ["collection": .string(collection.fullName), "name": .string(name)]
        func texts(_ texts: [String]) -> JSONValue { .array(texts.map { .string($0) }) }
        switch index {
        case let index as ValueIndexConfiguration:
            value["kind"] = "value"
            value["expressions"] = texts(index.expressions)
            value["where"] = index.where.map { .string($0) }
        case let index as FullTextIndexConfiguration:
            value["kind"] = "full-text"
            value["expressions"] = texts(index.expressions)
            value["where"] = index.where.map { .string($0) }
            value["language"] = index.language.map { .string($0) }
            value["ignoresAccents"] = .bool(index.ignoreAccents)
        case let index as ArrayIndexConfiguration:
            value["kind"] = "array"
            value["path"] = .string(index.path)
            value["expressions"] = texts(index.expressions ?? [])
        default: impossible("an index has a configuration of an unknown kind: \(type(of: index))")
        }
        return value
    }
}

struct DeleteIndex: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete",
        abstract: "Delete an index.",
        aliases: ["drop", "rm"]
    )

    @OptionGroup var options: CollectionOptions
    @Argument(help: "The index's name.", completion: .custom { Completions.indexes($0, $1, $2) })
    var name: String

    func run() throws {
        let (database, collection) = try options.open()
        guard try collection.indexes().contains(where: { $0.isExactly(name) }) else {
            throw LoveseatError.absent(
                "there is no index \"\(name)\" in \(collection.fullName)",
                nearest: NearestName.nearest(to: name, among: try collection.indexes())
            )
        }
        try collection.deleteIndex(forName: name)
        try database.close()
    }
}
