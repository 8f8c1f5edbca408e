import ArgumentParser
import Foundation
import Loveseat
import LoveseatInspector

struct Create: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Create a database, or collections in one.",
        discussion: """
            With --collections, the database may exist: the collections that it lacks are created. If there is nothing to create, the exit \
            code is 73.

            EXAMPLE
              loveseat create trips --collections travel.sights,travel.hotels
            """
    )

    @OptionGroup var argument: DatabaseArgument
    @Option(help: "Collections to create, separated by commas.")
    var collections = ""
    @Flag(help: "Print one JSON object: the folder, and the collections that were created.")
    var json = false

    func run() throws {
        let isNew = try !argument.exists
        let names = try collections.collectionNames
        guard isNew || !names.isEmpty else {
            throw LoveseatError(.cannotCreate, "\(argument.database) exists already")
        }
        let database = try argument.create()
        var created: [String] = []
        for name in names {
            if try database.collection(name: name.name, scope: name.scope) == nil {
                created.append(name.fullName)
            }
            try database.createCollection(name: name.name, scope: name.scope)
        }
        guard isNew || !created.isEmpty else {
            throw LoveseatError(
                .cannotCreate,
                "\(argument.database) exists already, with \(names.count == 1 ? "this collection" : "these collections")"
            )
        }
        if !isNew {
            let list = created.joined(separator: ", ")
            Output.notice(
                "loveseat: created the \(created.count == 1 ? "collection" : "collections") \(list) in \(argument.database)"
            )
        }
        if json {
            try Output.standard.line([
                "path": .string(database.path ?? ""), "isNew": .bool(isNew),
                "collections": .array(created.map { .string($0) }),
            ])
        }
        try database.close()
    }
}

struct Info: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show the collections and sizes of a database.",
        discussion: """
            The source is the database's name in the versions that it makes. It has one from its first session with a peer of Couchbase Lite 4 on.
            """
    )

    @OptionGroup var argument: DatabaseArgument
    @Flag(help: "Print one JSON object.")
    var json = false

    func run() throws {
        let database = try argument.read()
        let path = database.path ?? ""
        let (blobs, blobBytes) = Self.size("\(path)/blobs") { _ in true }
        let bytes = Self.documentBytes(path)
        var collections: [(String, UInt64)] = []
        var source: SourceID?
        for scope in try database.scopes() {
            for collection in try scope.collections() {
                collections.append((collection.fullName, collection.count))
                // All collections of a database have the same.
                source = try source ?? CollectionHistory(collection).source()
            }
        }
        if json {
            try Output.standard.line([
                "path": .string(path),
                "bytes": JSONValue(bytes),
                "blobs": JSONValue(blobs),
                "blobBytes": JSONValue(blobBytes),
                "collections": .object(JSONObject(collections.map { ($0.0, JSONValue($0.1)) }) { $1 }),
                "source": source.map { .string($0.text) } ?? .null,
            ])
        } else {
            try Output.standard.line("folder      \(path)")
            try Output.standard.line("documents   \(bytes.counted("byte"))")
            try Output.standard.line("blobs       \(blobs), \(blobBytes.counted("byte"))")
            if let source { try Output.standard.line("source      \(source.text)") }
            for (name, count) in collections {
                try Output.standard.line("collection  \(name): \(count.counted("document"))")
            }
        }
        try database.close()
    }

    /// The size of the files that the documents are in.
    fileprivate static func documentBytes(_ path: String) -> UInt64 {
        size(path) { $0.hasPrefix("db.sqlite") }.bytes
    }

    fileprivate static func size(_ folder: String, where isCounted: (String) -> Bool) -> (
        files: Int, bytes: UInt64
    ) {
        // A database without blobs has no folder for them, and files may go while they are counted.
        let files = (try? FileManager.default.contentsOfDirectory(atPath: folder))?.filter(isCounted) ?? []
        let sizes = files.map { name in
            let attributes = try? FileManager.default.attributesOfItem(atPath: "\(folder)/\(name)")
            return attributes?[.size] as? UInt64 ?? 0
        }
        return (files.count, sizes.reduce(0, +))
    }
}

struct Compact: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Remove blobs that no document refers to, and return free space to the file system.",
        discussion: """
            --tombstones AGE also removes the tombstones of documents that were deleted longer ago than AGE. A peer that was away for longer, \
            and still has such a document, brings it back. Standard error says how many tombstones were removed, and to which known peers \
            some of them had not been pushed.

            EXAMPLE
              loveseat compact trips --tombstones 90d
            """
    )

    @OptionGroup var argument: DatabaseArgument
    @Option(
        help: ArgumentHelp(
            "Also remove tombstones of deletions that are older: 0 or a higher number with s, m, h or d. The default is to keep all.",
            valueName: "age"
        )
    )
    var tombstones: String?
    @Flag(help: "Print one JSON object: what was removed, and the sizes before and after.")
    var json = false

    func validate() throws {
        guard tombstones.map({ TimeSpan.seconds($0) != nil }) ?? true else {
            throw ValidationError("--tombstones must be 0 or a higher number with s, m, h or d, such as 90d.")
        }
    }

    func run() throws {
        let database = try argument.open()
        let before = Self.sizes(database)
        var report: JSONValue = [:]
        if let age = tombstones.flatMap({ TimeSpan.seconds($0) }) {
            let pending = Self.pendingDeletions(in: database)
            let removed = try database.removeTombstones(olderThan: .seconds(age))
            report["tombstones"] = JSONValue(removed)
            report["notPushed"] = .array(try reportForgotten(pending, removed, in: database))
        }
        try database.performMaintenance(type: .compact)
        if json {
            report["before"] = before
            report["after"] = Self.sizes(database)
            try Output.standard.line(report)
        }
        try database.close()
    }

    /// Says how many tombstones were removed, and which peers had not been sent them. With `--json`, the object does.
    private func reportForgotten(
        _ pending: [PendingChanges.Deletions],
        _ removed: Int,
        in database: Database
    ) throws -> [JSONValue] {
        if !json { Output.remark("\(removed.counted("tombstone")) removed") }
        var peers: [JSONValue] = []
        for deletions in pending {
            let count = try PendingChanges(database).forgottenCount(of: deletions)
            if count == 0 { continue }
            let remote = deletions.remote.withoutCredentials
            peers.append(["peer": .string("\(remote)"), "tombstones": JSONValue(count)])
            if json { continue }
            Output.remark(
                "loveseat: \(count) of them had not been pushed to \(remote), which may still have the \(count == 1 ? "document" : "documents")"
            )
        }
        return peers
    }

    private static func sizes(_ database: Database) -> JSONValue {
        let path = database.path ?? ""
        let (blobs, blobBytes) = Info.size("\(path)/blobs") { _ in true }
        return [
            "bytes": JSONValue(Info.documentBytes(path)), "blobs": JSONValue(blobs),
            "blobBytes": JSONValue(blobBytes),
        ]
    }

    /// Returns the deletions that are not pushed yet. An error is only a remark: a damaged document must not keep tombstones from being
    /// removed.
    private static func pendingDeletions(in database: Database) -> [PendingChanges.Deletions] {
        do { return try PendingChanges(database).deletions() } catch {
            Output.remark("loveseat: which deletions were not pushed before is not known: \(error)")
            return []
        }
    }
}

struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Verify everything that is stored.",
        discussion: """
            Exits with 65 if something is damaged. It writes nothing, so that it works on a full disk and on one that cannot be written to. \
            It can run while another process has the database open, as `serve` does. Only the words of full-text indexes are left out if \
            the database cannot be opened for writing.

            Each document is verified: its revision ID, its tree, its flags, its sequence, and its content, if the revision's ID is the \
            digest of it, as it is for all that a Loveseat wrote. A sequence is found to be wrong if two documents have it, if it is below \
            the collection's first one, or, while the database is open elsewhere or was not closed, if it was never reserved. At most 1,000 \
            problems are listed, and the others counted.
            """
    )

    @OptionGroup var argument: DatabaseArgument
    @Flag(help: "Print one JSON object with the problems.")
    var json = false

    func run() throws {
        var problems: [String] = []
        do {
            let database = try open()
            problems = try DatabaseInspection(database).problems()
            let hasWords = try database.hasTextIndexes()
            try database.close()
            if hasWords { problems += try damagedWords() }
        } catch let error as LoveseatError where [.corruptData, .unreadableDatabase].contains(error.code) {
            problems.append(error.message)
        }
        if json {
            try Output.standard.line(["problems": .array(problems.map { .string($0) })])
        } else {
            for problem in problems { try Output.standard.line(problem) }
        }
        guard problems.isEmpty else { throw ExitCode(65) }
        if !json { Output.notice("no problems found") }
    }

    /// A database of an older format is brought up to date first.
    private func open() throws -> Database {
        do { return try argument.inspect() } catch let error as LoveseatError
            where error.code.domain == .sqlite
        {
            try argument.open().close()
            return try argument.inspect()
        }
    }

    /// SQLite checks the words of a full-text index only where it may write.
    private func damagedWords() throws -> [String] {
        do {
            let database = try argument.open()
            let problems = try DatabaseInspection(database).damagedTextIndexes()
            try database.close()
            return problems
        } catch let error as LoveseatError where error.code != .corruptData {
            Output.remark(
                "the words of full-text indexes are not checked: close the database elsewhere, and make it writable"
            )
            return []
        }
    }
}

extension Database {
    fileprivate func hasTextIndexes() throws -> Bool {
        try scopes().flatMap { try $0.collections() }.contains { collection in
            try collection.indexes().contains {
                try collection.index(withName: $0) is FullTextIndexConfiguration
            }
        }
    }
}
