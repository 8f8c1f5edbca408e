import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// The collections that are served, by the names of their databases.
struct Databases: Sendable {
    let database: Database
    let fixed: [ExactText: Collection]?
    let allowsCreation: Bool

    /// One database of CouchDB's wire: a collection.
    struct Entry: Sendable {
        let name: String
        let collection: Collection
        let store: DocumentStore
        /// The rights of the client; nil if it may do everything.
        var access: CollectionAccess?
        /// Why the app does not take a revision; nil if it takes all.
        var filter: (@Sendable (FilterCandidate) -> LoveseatError?)?
        var handle: CollectionHandle { collection.handle }
    }

    /// - Throws: `not_found`.
    func entry(_ name: String) throws -> Entry {
        guard let collection = try collection(name) else { throw CouchDBError.noDatabase }
        let store = try database.store
        guard store.contains(collection.handle) else { throw CouchDBError.noDatabase }
        return Entry(name: name, collection: collection, store: store)
    }

    private func collection(_ name: String) throws -> Collection? {
        if let fixed { return fixed[ExactText(name)] }
        if name.isExactly(database.name) { return try database.defaultCollection() }
        for candidate in Self.names(for: name, in: database.name) {
            if let collection = try database.collection(candidate) { return collection }
        }
        return nil
    }

    /// The collections that a name can mean.
    private static func names(for name: String, in database: String) -> [CollectionName] {
        var names: [CollectionName] = []
        if name.beginsExactly(with: database + ".") {
            let rest = name.dropping(database + ".").split(
                separator: ".",
                maxSplits: 1,
                omittingEmptySubsequences: false
            )
            if rest.count == 2, let name = CollectionName(scope: String(rest[0]), name: String(rest[1])) {
                names.append(name)
            }
        }
        if let name = CollectionName(scope: "_default", name: encoded(name)) { names.append(name) }
        return names
    }

    /// A database's name as that of a collection, which may have fewer characters.
    private static func encoded(_ name: String) -> String {
        var text = ""
        for byte in name.utf8 {
            switch byte {
            case 0x30...0x39, 0x61...0x7A, UInt8(ascii: "_"), UInt8(ascii: "-"):
                text.unicodeScalars.append(Unicode.Scalar(byte))
            default: text += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
        return text
    }

    /// The names of all databases, in order.
    func names() throws -> [String] {
        if let fixed { return fixed.keys.sorted().map(\.text) }
        var names: [String] = []
        for scope in try database.scopes() {
            for collection in try scope.collections() {
                if scope.name != "_default" {
                    names.append("\(database.name).\(scope.name).\(collection.name)")
                } else if collection.name == "_default" {
                    names.append(database.name)
                } else {
                    names.append(PercentCoding.decode(collection.name) ?? collection.name)
                }
            }
        }
        return names.sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) }
    }

    /// - Throws: `CouchDBError` for a name that no database can have.
    static func check(_ name: String) throws(CouchDBError) {
        guard name.utf8.count <= 238 else {
            throw CouchDBError(
                400,
                "database_name_too_long",
                "The database name is longer than 238 characters."
            )
        }
        let allowed = Set("abcdefghijklmnopqrstuvwxyz0123456789_$()+-/.".utf8)
        guard let first = name.utf8.first, (0x61...0x7A).contains(first),
            name.utf8.allSatisfy(allowed.contains)
        else {
            throw .illegalDatabaseName(name)
        }
    }

    func create(_ name: String) async throws {
        guard try collection(name) == nil else {
            throw CouchDBError(
                412,
                "file_exists",
                "The database could not be created, the file already exists."
            )
        }
        try Self.check(name)
        guard allowsCreation, fixed == nil else {
            throw CouchDBError(
                403,
                "forbidden",
                "this listener creates no databases: create a collection where it runs, or start it with allowsDatabaseCreation (serve --couchdb-create)"
            )
        }
        let wanted = Self.names(for: name, in: database.name)
        guard let chosen = wanted.first, chosen.name.utf8.count <= 251 else {
            throw CouchDBError(400, "database_name_too_long", "no collection can have the name \(name)")
        }
        _ = try await database.write {
            try $0.createCollection(name: chosen.name, scope: chosen.scope)
        }
    }

    func delete(_ name: String) async throws {
        guard let collection = try collection(name) else { throw CouchDBError.noDatabase }
        guard allowsCreation, fixed == nil, collection.fullName != "_default._default" else {
            throw CouchDBError(403, "forbidden", "this listener deletes no such database")
        }
        try await database.write {
            try $0.deleteCollection(name: collection.name, scope: collection.scope.name)
        }
    }
}

extension CouchDBError {
    static func illegalDatabaseName(_ name: String) -> Self {
        Self(
            400,
            "illegal_database_name",
            "Name: '\(name)'. Only lowercase characters (a-z), digits (0-9), and any of the characters _, $, (, ), +, -, and / are allowed. Must begin with a letter."
        )
    }
}
