import ArgumentParser
import Foundation
import Loveseat

/// How much a command says.
struct QuietOption: ParsableArguments {
    @Flag(help: "Print only results, errors and warnings.")
    var quiet = false

    func validate() throws { if quiet { Output.beQuiet() } }
}

/// Which database.
struct DatabaseArgument: ParsableArguments {
    @Argument(
        help: "The database: DB means the folder DB.loveseat.",
        completion: .custom { Completions.databases($0, $1, $2) }
    )
    var database: String
    @OptionGroup var quieting: QuietOption

    private var parts: (directory: String, name: String) {
        var path = database
        while path.count > 1, path.hasSuffix("/") { path.removeLast() }
        if path.hasSuffix(".loveseat") { path.removeLast(".loveseat".count) }
        let url = URL(filePath: path)
        return (url.deletingLastPathComponent().path, url.lastPathComponent)
    }

    func validate() throws {
        var path = database[...]
        while path.hasSuffix("/") { path = path.dropLast() }
        if path.hasSuffix(".loveseat") { path = path.dropLast(".loveseat".count) }
        guard let last = path.last, last != "/" else {
            throw ValidationError("\"\(database)\" is not a database: use for example trips or data/trips.")
        }
    }

    /// The database's folder, which may not exist.
    var folder: String { "\(parts.directory)/\(parts.name).loveseat" }

    /// Whether there is a database.
    ///
    /// - Throws: ``LoveseatError`` if this user may not know, or may not read it.
    var exists: Bool {
        get throws {
            let file = "\(folder)/db.sqlite"
            let isThere = access(file, F_OK) == 0
            if !isThere || access(file, R_OK) != 0 { try Self.refuse(errno, isThere ? file : folder) }
            return isThere
        }
    }

    /// The path of an existing file that takes the place of the folder of the database, or of one above it; nil if there is none.
    private var fileInTheWay: String? {
        var place = URL(filePath: folder)
        var isFolder: ObjCBool = false
        while !FileManager.default.fileExists(atPath: place.path, isDirectory: &isFolder) {
            let parent = place.deletingLastPathComponent()
            if parent.path.utf8.count >= place.path.utf8.count { return nil }
            place = parent
        }
        return isFolder.boolValue ? nil : place.path
    }

    /// Says why something is not accessible, unless it does not exist.
    private static func refuse(_ error: Int32, _ path: String) throws {
        if error == ENOENT || error == ENOTDIR { return }
        let isDenied = error == EACCES || error == EPERM
        throw LoveseatError(
            .init(Int(error), domain: .posix),
            isDenied
                ? "permission denied: \(path) belongs to another user, or must not be read"
                : "cannot open \(path): \(String(cString: strerror(error)))"
        )
    }

    /// Opens an existing database.
    ///
    /// `keepsDeltaBases`: whether documents keep earlier bodies from now on, to send peers the difference.
    func open(keepsDeltaBases: Bool = false) throws -> Database {
        guard try exists else { throw absence }
        return try create(keepsDeltaBases: keepsDeltaBases)
    }

    /// Opens an existing database for reading, which is possible while `serve` or `sync` has it open.
    func read() throws -> Database {
        guard try exists else { return try open() }
        let config = DatabaseConfiguration(directory: parts.directory, readOnly: true)
        return try Database(name: parts.name, config: config)
    }

    /// Opens an existing database for reading, without any other file, if no process writes.
    func inspect() throws -> Database {
        guard try exists else { return try open() }
        var config = DatabaseConfiguration(directory: parts.directory, readOnly: true)
        config.excludesWriters = true
        return try Database(name: parts.name, config: config)
    }

    /// Opens a database, and creates it if it does not exist, for a command whose purpose is another one.
    ///
    /// - Throws: `notFound` if its path goes through an existing database, as if it named one of the collections.
    func createUnasked() throws -> Database {
        if try !exists, let (parent, _) = collectionPath {
            // A folder may have the same name as a database beside it.
            let isFolder = FileManager.default.fileExists(atPath: parts.directory)
            if !isFolder || parts.directory.isExactly(parent.folder) { throw absence }
        }
        return try create()
    }

    /// Opens a database, and creates it if it does not exist.
    func create(keepsDeltaBases: Bool = false) throws -> Database {
        if try !exists, let file = fileInTheWay {
            throw LoveseatError(
                .cannotCreate,
                "cannot create \(database): \(file) is there already, and is not a folder"
            )
        }
        var config = DatabaseConfiguration(directory: parts.directory, enableDeltaSync: keepsDeltaBases)
        config.remembersDeltaSync = true
        return try Database(name: parts.name, config: config)
    }
}

/// Which database and which of its collections.
struct CollectionOptions: ParsableArguments {
    @OptionGroup var argument: DatabaseArgument

    @Option(
        name: [.short, .long],
        help: "The collection: scope.collection, or a collection of the default scope.",
        completion: .custom { Completions.collections($0, $1, $2) }
    )
    var collection = "_default"

    func name() throws -> CollectionName { try collection.collectionName }

    /// Opens both. They must exist.
    /// `advice`: what else can be done if the collection does not exist.
    func open(advice: String? = nil) throws -> (database: Database, collection: Loveseat.Collection) {
        let database = try argument.open()
        return (database, try existing(in: database, advice: advice))
    }

    /// Opens both for reading. They must exist.
    func read() throws -> (database: Database, collection: Loveseat.Collection) {
        let database = try argument.read()
        return (database, try existing(in: database))
    }

    /// Changes documents of an existing collection in one transaction. `failure`: the consequence of a document that does not exist, for the
    /// message. `body` changes a document, and throws `notFound` if there is none.
    func change(
        _ ids: [String],
        failure: String,
        _ body: (Loveseat.WriteTransaction, Loveseat.Collection, String) throws -> Void
    ) throws {
        let (database, collection) = try open()
        try database.write { transaction in
            for id in ids {
                do { try body(transaction, collection, id) } catch LoveseatError.Code.notFound {
                    let absence = collection.absence(of: id) {
                        try transaction.documentIDs($0, in: collection)
                    }
                    throw LoveseatError(absence.code, "\(failure): \(absence.message)")
                }
            }
        }
        try database.close()
    }

    private func existing(in database: Database, advice: String? = nil) throws -> Loveseat.Collection {
        let name = try name()
        guard let collection = try database.collection(name: name.name, scope: name.scope) else {
            throw name.absence(from: database, advice: advice)
        }
        return collection
    }

    /// Runs a closure with both, and creates before what does not exist. It is reported at the end, or undone after an error if nothing was
    /// saved.
    func creating(_ body: (Database, Loveseat.Collection) throws -> Void) throws {
        let (database, collection, created) = try createInSilence()
        do { try body(database, collection) } catch {
            // The closure's error is the one to report.
            try? created?.undo(collection, of: database)
            throw error
        }
        if let created { Output.notice(created.news) }
        try database.close()
    }

    /// The database or collection that a command created.
    struct Created {
        /// Whether it is the database, and not only the collection.
        let isDatabase: Bool
        /// The line that says so.
        let news: String

        /// Deletes it, unless there is something in it.
        fileprivate func undo(_ collection: Loveseat.Collection, of database: Database) throws {
            // Documents that were saved before the error stay.
            if try CollectionHistory(collection).changeCount(after: 0) > 0 { return }
            if isDatabase {
                try database.delete()
            } else {
                try database.deleteCollection(name: collection.name, scope: collection.scope.name)
            }
        }
    }

    /// Opens both, and creates what does not exist.
    func createInSilence() throws -> (
        database: Database, collection: Loveseat.Collection, created: Created?
    ) {
        let name = try name()
        let isNew = try !argument.exists
        let database = try argument.createUnasked()
        do {
            let isThere = try database.collection(name: name.name, scope: name.scope) != nil
            let meant = isThere ? nil : name.probablyMeant(in: database)
            let collection = try database.createCollection(name: name.name, scope: name.scope)
            if isThere, !isNew { return (database, collection, nil) }
            let news =
                isNew
                ? argument.creationNews
                : "loveseat: created the collection \(name.fullName) in \(argument.database)"
                    + NearestName.question(meant)
            return (database, collection, Created(isDatabase: isNew, news: news))
        } catch {
            // The collection's error is the one to report.
            try? database.close()
            throw error
        }
    }

    /// Opens both for reading, and reads an existing document.
    func document(_ id: String) throws -> (Database, Loveseat.Collection, Document) {
        let (database, collection) = try read()
        guard let document = try collection.document(id: id) else {
            throw collection.absence(of: id)
        }
        return (database, collection, document)
    }
}

extension String {
    /// The text as a shell reads it as one word.
    var shellWord: String {
        let isPlain =
            !isEmpty
            && utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), 0x80...0xFF:
                    true
                default: "-_./:,@%+=".utf8.contains(byte)
                }
            }
        return isPlain ? self : "'" + replacing("'", with: "'\\''") + "'"
    }

    var collectionName: CollectionName {
        get throws {
            guard let name = CollectionName(path: self) else {
                throw LoveseatError(
                    .invalidParameter,
                    "\"\(self)\" is not a collection's name: use scope.collection"
                )
            }
            return name
        }
    }

    /// Names separated by commas.
    var collectionNames: [CollectionName] {
        get throws { try listItems.map { try $0.collectionName } }
    }

    /// Items separated by commas, and perhaps spaces.
    var listItems: [String] {
        split(separator: ",").map { $0.trimmingCharacters(in: .whitespacesAndNewlines) }.filter {
            !$0.isEmpty
        }
    }
}
