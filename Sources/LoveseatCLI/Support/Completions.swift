import ArgumentParser
import Foundation
import Loveseat

/// The words that a shell proposes when the user presses the Tab key. After an error there are none.
enum Completions {
    private static let maximum = 200
    /// The end of the name of a folder. Bash adds the slash itself.
    private static let folderEnd = ProcessInfo.processInfo.environment["SAP_SHELL"] == "bash" ? "" : "/"

    /// Databases, and folders that may contain some.
    static func databases(_ words: [String], _ index: Int, _ typed: String) -> [String] {
        let suffix = ".loveseat"
        return files(typed).compactMap { path, isFolder in
            guard isFolder else { return nil }
            return path.hasSuffix(suffix) ? String(path.dropLast(suffix.count)) : path + folderEnd
        }
        .sorted()
    }

    /// The files and folders whose paths begin with a text.
    private static func files(_ typed: String) -> [(path: String, isFolder: Bool)] {
        let start = typed.lastIndex(of: "/").map { typed.index(after: $0) } ?? typed.startIndex
        let (folder, name) = (String(typed[..<start]), typed[start...])
        let files = FileManager.default
        // The folder may not exist, or not be readable.
        let found = (try? files.contentsOfDirectory(atPath: folder.isEmpty ? "." : folder)) ?? []
        return found.filter { $0.utf8.starts(with: name.utf8) && ($0.first != "." || name.first == ".") }
            .compactMap { entry in
                var isFolder: ObjCBool = false
                guard files.fileExists(atPath: folder + entry, isDirectory: &isFolder) else { return nil }
                return (folder + entry, isFolder.boolValue)
            }
    }

    /// The IDs of the documents of the database that is named before.
    static func documentIDs(_ words: [String], _ index: Int, _ typed: String) -> [String] {
        read(words, index) { database in
            let name = try option(["-c", "--collection"], in: words)?.collectionName ?? .default
            guard let collection = try database.collection(name: name.name, scope: name.scope) else {
                return []
            }
            return try database.read {
                try $0.documentIDs(DocumentListing(prefix: unquoted(typed), limit: maximum), in: collection)
            }
        }
    }

    /// The collections of the database that is named before, and of the commands that have an option for several.
    static func collections(_ words: [String], _ index: Int, _ typed: String) -> [String] {
        read(words, index) { database in
            let names = try database.collections(named: []).map(\.fullName)
            let found = names.filter { $0.beginsExactly(with: typed) }
            // One of the default scope may be named without it.
            return found.isEmpty
                ? names.map(CollectionName.short).filter { $0.beginsExactly(with: typed) } : found
        }
    }

    /// The same for an option that takes several, separated by commas: the last one is completed.
    static func collectionLists(_ words: [String], _ index: Int, _ typed: String) -> [String] {
        let start = typed.lastIndex(of: ",").map { typed.index(after: $0) } ?? typed.startIndex
        return collections(words, index, String(typed[start...])).map { typed[..<start] + $0 }
    }

    /// The indexes of the database that is named before.
    static func indexes(_ words: [String], _ index: Int, _ typed: String) -> [String] {
        read(words, index) { database in
            let name = try option(["-c", "--collection"], in: words)?.collectionName ?? .default
            let collection = try database.collection(name: name.name, scope: name.scope)
            return (try collection?.indexes() ?? []).filter { $0.utf8.starts(with: unquoted(typed).utf8) }
        }
    }

    /// The labels of identities.
    static func identityLabels(_ words: [String], _ index: Int, _ typed: String) -> [String] {
        // The store may not exist yet, or not be readable.
        let labels = (try? TLSIdentity.labels(in: Identities.store)) ?? []
        return labels.filter { $0.utf8.starts(with: unquoted(typed).utf8) }
    }

    /// Labels of identities, and files that may have one.
    static func identities(_ words: [String], _ index: Int, _ typed: String) -> [String] {
        let labels = identityLabels(words, index, typed) + ("anonymous".hasPrefix(typed) ? ["anonymous"] : [])
        return labels + files(unquoted(typed)).map { $0.path + ($0.isFolder ? folderEnd : "") }.sorted()
    }

    private static func read(_ words: [String], _ index: Int, _ body: (Database) throws -> [String])
        -> [String]
    {
        // The first words are the program's and the commands' names. The database is the first word after them that names an existing one.
        for (place, word) in words.enumerated() where place > 0 && place != index && !word.hasPrefix("-") {
            var argument = DatabaseArgument()
            argument.database = unquoted(word)
            // The word may not be a database, or one that cannot be read now.
            guard (try? argument.exists) == true, let database = try? argument.read() else { continue }
            defer { try? database.close() }
            return (try? body(database)) ?? []
        }
        return []
    }

    private static func option(_ names: [String], in words: [String]) -> String? {
        for (place, word) in words.enumerated() {
            if names.contains(word), words.indices.contains(place + 1) { return unquoted(words[place + 1]) }
            for name in names where word.hasPrefix("\(name)=") {
                return unquoted(String(word.dropFirst(name.count + 1)))
            }
        }
        return nil
    }

    /// Shells pass words as they were typed.
    private static func unquoted(_ word: String) -> String {
        String(word.filter { $0 != "\"" && $0 != "'" && $0 != "\\" })
    }
}

extension CompletionKind {
    static var database: CompletionKind { .custom { Completions.databases($0, $1, $2) } }
    static var collections: CompletionKind { .custom { Completions.collectionLists($0, $1, $2) } }
    static var documentID: CompletionKind { .custom { Completions.documentIDs($0, $1, $2) } }
    static var identity: CompletionKind { .custom { Completions.identities($0, $1, $2) } }
    static var identityLabel: CompletionKind { .custom { Completions.identityLabels($0, $1, $2) } }
}
