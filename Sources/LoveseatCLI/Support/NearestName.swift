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
    /// The database with the most similar name in the same folder.
    var nearest: String? {
        let start = database.lastIndex(of: "/").map { database.index(after: $0) } ?? database.startIndex
        // Completions put / behind a folder that is not a database.
        let names = Completions.databases([], 0, String(database[..<start])).filter { !$0.hasSuffix("/") }
        return NearestName.nearest(to: database, among: names)
    }
}

extension CollectionName {
    /// The error that there is no collection with this name.
    func absence(from database: Database, advice: String? = nil) -> LoveseatError {
        // The hint is only an addition.
        let names = (try? database.collections(named: []).map(\.fullName)) ?? []
        let nearest = NearestName.nearest(to: fullName, among: names)
        return .absent("there is no collection \(fullName)", nearest: nearest, advice: advice)
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
        let list = list ?? { try self.documentIDs($0) }
        let near = NearestName.maximum / 2
        // The hint is only an addition.
        let after = (try? list(DocumentListing(from: id, limit: near))) ?? []
        let before = (try? list(DocumentListing(through: id, descending: true, limit: near))) ?? []
        let nearest = NearestName.nearest(to: id, among: before + after)
        return .absent("there is no document \"\(id)\" in \(fullName)", nearest: nearest, advice: advice)
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
            guard let next = commands.first(where: { $0._commandName.isExactly(argument) }) else {
                throw LoveseatError.absent(
                    "there is no command `\(path) \(argument)`",
                    nearest: NearestName.nearest(to: argument, among: commands.map { $0._commandName }),
                    advice: "see `\(path) --help`",
                    code: .invalidParameter
                )
            }
            command = next
            path += " \(argument)"
        }
    }
}
