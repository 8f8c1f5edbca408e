import ArgumentParser
import Foundation
import Loveseat

/// Finds the name that a user probably meant, after one that does not exist.
enum NearestName {
    /// The maximum number of names that are compared.
    static let maximum = 10_000

    /// Returns the name with the fewest different letters: at most a third of them, and at most three. Of several it is the first one.
    static func nearest(to typed: String, among names: some Sequence<String>) -> String? {
        let wanted = letters(typed)
        var limit = min(max(wanted.count / 3, 1), 3)
        var nearest: String?
        for name in names.prefix(maximum) where !name.isExactly(typed) {
            guard let distance = distance(wanted, letters(name), atMost: limit), distance < wanted.count
            else {
                continue
            }
            nearest = name
            if distance == 0 { break }
            limit = distance - 1
        }
        return nearest
    }

    /// Likewise, in place of a name that a command creates. Short names, and names that differ only in digits, are not taken for mistakes:
    /// numbers count up.
    static func probablyMeant(by new: String, among names: some Sequence<String>) -> String? {
        func withoutDigits(_ name: String) -> String { name.filter { !$0.isNumber } }
        if new.count < 4 { return nil }
        return nearest(to: new, among: names.filter { !withoutDigits($0).isExactly(withoutDigits(new)) })
    }

    /// The end of a line about something that was created, which names what was probably meant.
    static func question(_ meant: String?) -> String { meant.map { ": did you mean \"\($0)\"?" } ?? "" }

    private static func letters(_ text: String) -> [UInt8] { Array(text.lowercased().utf8) }

    /// How many bytes have to be added, removed, replaced, or exchanged with the next one; nil if there are more than `edits`.
    private static func distance(_ first: [UInt8], _ second: [UInt8], atMost edits: Int) -> Int? {
        guard abs(first.count - second.count) <= edits else { return nil }
        let tooMany = edits + 1
        var beforeLast = [Int](repeating: tooMany, count: second.count + 1)
        var last = (0...second.count).map { min($0, tooMany) }
        for row in 0..<first.count {
            var current = [Int](repeating: tooMany, count: second.count + 1)
            if row < edits { current[0] = row + 1 }
            // Only what is near the diagonal can be within the limit.
            for column in max(0, row - edits)..<max(0, min(second.count, row + edits + 1)) {
                let isEqual = first[row] == second[column]
                var steps = min(last[column] + (isEqual ? 0 : 1), last[column + 1] + 1, current[column] + 1)
                if row > 0, column > 0, first[row] == second[column - 1], first[row - 1] == second[column] {
                    steps = min(steps, beforeLast[column - 1] + 1)
                }
                current[column + 1] = min(steps, tooMany)
            }
            (beforeLast, last) = (last, current)
        }
        return last[second.count] <= edits ? last[second.count] : nil
    }
}

extension LoveseatError {
    /// An error that something does not exist, with what the user probably meant, and with what else can be done.
    static func absent(
        _ sentence: String,
        nearest: String?,
        advice: String? = nil,
        code: LoveseatError.Code = .notFound
    ) -> LoveseatError {
        let question = nearest.map { "did you mean \"\($0)\"?" }
        let advice = advice.map { question == nil ? $0 : "If not, \($0)" }
        let more = [question, advice].compactMap(\.self)
        return LoveseatError(code, ([sentence + (more.isEmpty ? "" : ":")] + more).joined(separator: " "))
    }
}

extension DatabaseArgument {
    /// The error that there is no such database.
    var absence: LoveseatError {
        let sentence = "there is no database \(database)"
        if let next = databaseBehind {
            return LoveseatError(
                .notFound,
                "\(sentence): the database comes first, as in \(next.shellWord) \(database.shellWord)"
            )
        }
        if let (parent, collection) = collectionPath {
            // The hint is only an addition.
            let name = (try? parent.read()).flatMap { opened in
                defer { try? opened.close() }
                return CollectionName.nearest(to: collection, in: opened)
            }
            return LoveseatError(
                .notFound,
                "\(sentence): the database is \(parent.database), and --collection names one of its collections, as in -c \((name ?? collection).shellWord)"
            )
        }
        return .absent(
            sentence,
            nearest: nearest,
            advice: "create it with `loveseat create \(database.shellWord)`"
        )
    }

    /// An existing database that the command line names directly behind this one, as if the arguments had changed places.
    var databaseBehind: String? {
        let arguments = CommandLine.arguments
        guard let place = arguments.dropFirst().firstIndex(where: { $0.isExactly(database) }),
            place + 1 < arguments.count, !arguments[place + 1].hasPrefix("-")
        else { return nil }
        var other = DatabaseArgument()
        other.database = arguments[place + 1]
        // One that must not be read is not meant.
        return (try? other.exists) == true ? other.database : nil
    }

    /// The database and the collection of a path such as `trips/travel.sights`; nil for any other.
    var collectionPath: (database: DatabaseArgument, collection: String)? {
        guard let slash = database.lastIndex(of: "/") else { return nil }
        let collection = String(database[database.index(after: slash)...])
        var parent = DatabaseArgument()
        parent.database = String(database[..<slash])
        guard !collection.isEmpty, !parent.database.isEmpty, (try? parent.exists) == true else { return nil }
        return (parent, collection)
    }

    /// The database with the most similar name in the same folder.
    var nearest: String? { neighbour { NearestName.nearest(to: $0, among: $1) } }

    /// The line that says that a command has created the database, with the one that was probably meant.
    var creationNews: String {
        let meant =
            databaseBehind.map { ": did you mean the database \"\($0)\"?" }
            ?? NearestName.question(neighbour { NearestName.probablyMeant(by: $0, among: $1) })
        return "loveseat: created the database \(database)\(meant)"
    }

    /// One of the databases in the same folder. `choose`: chooses a name; the folder makes none of them similar.
    private func neighbour(_ choose: (_ typed: String, _ names: [String]) -> String?) -> String? {
        let start = database.lastIndex(of: "/").map { database.index(after: $0) } ?? database.startIndex
        let folder = String(database[..<start])
        // Completions put / behind a folder that is not a database.
        let names = Completions.databases([], 0, folder).filter { !$0.hasSuffix("/") }
        return choose(String(database[start...]), names.map { String($0.dropFirst(folder.count)) })
            .map { folder + $0 }
    }
}

extension CollectionName {
    /// The error that there is no collection with this name.
    func absence(from database: Database, advice: String? = nil) -> LoveseatError {
        .absent(
            "there is no collection \(fullName)",
            nearest: Self.nearest(to: fullName, in: database),
            advice: advice
        )
    }

    /// The name without the default scope: what all names have in common makes none of them similar.
    static func short(_ fullName: String) -> String {
        let scope = "\(CollectionName.default.scope)."
        return fullName.beginsExactly(with: scope) ? String(fullName.dropFirst(scope.count)) : fullName
    }

    /// The collection that a user probably meant, in place of one that a command creates.
    func probablyMeant(in database: Database) -> String? {
        // The hint is only an addition.
        let names = (try? database.collections(named: []).map(\.fullName)) ?? []
        let meant = NearestName.probablyMeant(by: Self.short(fullName), among: names.map(Self.short))
        return names.first { name in meant.map { Self.short(name).isExactly($0) } ?? false }
    }

    /// The collection that a user probably meant by a name, which may lack the scope, or have another one.
    static func nearest(to typed: String, in database: Database) -> String? {
        func last(_ name: String) -> String {
            String(name[(name.lastIndex(of: ".").map(name.index(after:)) ?? name.startIndex)...])
        }
        // The hint is only an addition.
        let names = (try? database.collections(named: []).map(\.fullName)) ?? []
        let wanted = short(typed)
        if let nearest = NearestName.nearest(to: wanted, among: names.map(short)) {
            return names.first { short($0).isExactly(nearest) }
        }
        let sameName = names.first { last($0).isExactly(last(typed)) && !$0.isExactly(typed) }
        if let sameName { return sameName }
        let nearest = NearestName.nearest(to: last(typed), among: names.map(last))
        return names.first { name in nearest.map { last(name).isExactly($0) } ?? false }
    }
}

extension Loveseat.Collection {
    /// The error that there is no document with an ID. It names the most similar one; in a large collection only of those that are near
    /// it in order.
    ///
    /// `list`: how to read IDs inside a transaction.
    func absence(
        of id: String,
        advice: String? = nil,
        list: ((DocumentListing) throws -> [String])? = nil
    ) -> LoveseatError {
        let nearest = NearestName.nearest(to: id, among: ids(near: id, NearestName.maximum, list))
        return .absent("there is no document \"\(id)\" in \(fullName)", nearest: nearest, advice: advice)
    }

    /// The IDs around one, those before it first.
    private func ids(
        near id: String,
        _ count: Int,
        _ list: ((DocumentListing) throws -> [String])? = nil
    ) -> [String] {
        let list = list ?? { try self.documentIDs($0) }
        // The hint is only an addition.
        let after = (try? list(DocumentListing(from: id, limit: count / 2))) ?? []
        let before = (try? list(DocumentListing(through: id, descending: true, limit: count / 2))) ?? []
        return before + after
    }

    /// Runs a closure that needs a document. Its error that there is none names the most similar one.
    func requiring<Value>(_ id: String, _ body: () throws -> Value) throws -> Value {
        do { return try body() } catch LoveseatError.Code.notFound { throw absence(of: id) }
    }

    /// The ID that a user probably meant, in place of the one of a document that a command creates.
    func probablyMeant(by id: String) -> String? {
        NearestName.probablyMeant(by: id, among: ids(near: id, 1_000))
    }
}

extension ParsableCommand {
    /// Whether a word is the command's name, or an alias of it.
    fileprivate static func isNamed(_ word: String) -> Bool {
        _commandName.isExactly(word) || configuration.aliases.contains { $0.isExactly(word) }
    }
}

/// The words that other programs have for commands.
private enum CommandWords {
    /// Words for the same thing. One of each line is a command in some place.
    private static let synonyms = [
        "create new init add make generate keygen",
        "delete rm remove drop erase destroy del forget unpair purge",
        "ls list dir", "get show cat read view print", "set update edit modify patch",
        "put insert save store add write", "export dump backup", "import load restore",
        "query find search select", "sync replicate", "pull fetch clone download", "push send upload",
        "revs revisions history log versions", "info status stat stats describe", "compact vacuum gc prune",
        "check verify fsck validate repair", "serve listen server start share", "browse discover scan",
        "changes watch tail follow feed", "blob attach attachment attachments", "collection collections",
        "index indexes indices", "identity identities cert certificate key", "pair pairing",
        "use accept join", "inspect gui ui web", "sql shell repl", "conflicts conflict", "pending unsynced",
    ].map { $0.split(separator: " ").map(String.init) }

    /// Commands of other places that do the work.
    static let elsewhere = [
        "loveseat collection create": "loveseat create DB --collections NAME",
        "loveseat collection new": "loveseat create DB --collections NAME",
        "loveseat collection add": "loveseat create DB --collections NAME",
        "loveseat collection list": "loveseat info DB", "loveseat collection ls": "loveseat info DB",
    ]

    /// A command that is another word for one that was typed.
    static func synonym(of typed: String, among names: [String]) -> String? {
        for group in synonyms where group.contains(where: { $0.isExactly(typed.lowercased()) }) {
            if let name = names.first(where: { name in group.contains { $0.isExactly(name) } }) {
                return name
            }
        }
        return nil
    }
}

extension LoveseatCommand {
    /// Refuses a command that does not exist. The parser would only call it an unexpected argument.
    static func refuseUnknown(in arguments: some Sequence<String>) throws {
        var command: any ParsableCommand.Type = LoveseatCommand.self
        var path = "loveseat"
        for argument in arguments {
            let commands = command.configuration.subcommands
            // An option comes first, or the command has no commands of its own.
            if commands.isEmpty || argument.hasPrefix("-") { return }
            if argument.isExactly("help"), path == "loveseat" { return }
            guard let next = commands.first(where: { $0.isNamed(argument) }) else {
                let names = commands.map { $0._commandName }
                let elsewhere = CommandWords.elsewhere["\(path) \(argument)"]
                throw LoveseatError.absent(
                    "there is no command `\(path) \(argument)`",
                    nearest: elsewhere == nil
                        ? CommandWords.synonym(of: argument, among: names)
                            ?? NearestName.nearest(to: argument, among: names) : nil,
                    advice: elsewhere.map { "use `\($0)`" } ?? "see `\(path) --help`",
                    code: .invalidParameter
                )
            }
            command = next
            path += " \(argument)"
        }
    }
}
