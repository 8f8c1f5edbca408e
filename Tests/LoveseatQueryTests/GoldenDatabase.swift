import Foundation
import GRDBSQLite
import LoveseatModel
import LoveseatQuery
import LoveseatStorage

/// The documents of the corpus in SQLite, in tables as docs/schema.md describes them.
final class GoldenDatabase {
    struct Failure: Error {
        var stage: String
        var message: String
        var position: Int?
    }

    struct Answer {
        var columns: [String]
        var rows: [JSONValue]
        var plan: [String]
    }

    private let connection: OpaquePointer
    private(set) var collections: [CollectionName: QueryCollection] = [:]
    private static let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

    /// Local time is that of the time zone.
    init(timeZone: String, documents: [CollectionName: [GoldenCorpus.Document]]) throws {
        var opened: OpaquePointer?
        guard sqlite3_open(":memory:", &opened) == SQLITE_OK, let opened,
            let zone = TimeZone(identifier: timeZone)
        else {
            throw Failure(stage: "open", message: "no database, or no time zone \(timeZone)")
        }
        connection = opened
        var environment = QuerySQLFunctions.platform
        environment.localOffset = {
            Int64(zone.secondsFromGMT(for: Date(timeIntervalSince1970: TimeInterval($0))))
        }
        guard QuerySQLFunctions.register(on: connection, environment: environment) == SQLITE_OK else {
            throw failure("open")
        }
        try run("BEGIN")
        for (name, documents) in documents {
            try load(name, documents)
        }
        try run("COMMIT")
    }

    deinit { sqlite3_close_v2(connection) }

    private func failure(_ stage: String) -> Failure {
        Failure(stage: stage, message: String(cString: sqlite3_errmsg(connection)))
    }

    func run(_ sql: String) throws {
        guard sqlite3_exec(connection, sql, nil, nil, nil) == SQLITE_OK else { throw failure("index") }
    }

    /// All documents in their order, then the tombstones; those that have expired are purged.
    private func load(_ name: CollectionName, _ documents: [GoldenCorpus.Document]) throws {
        let table = name.fullName
        try run(
            """
            CREATE TABLE "\(table)" (
                row INTEGER PRIMARY KEY, doc_id TEXT NOT NULL, sequence INTEGER NOT NULL, revision TEXT NOT NULL,
                flags INTEGER NOT NULL DEFAULT 0, synced INTEGER NOT NULL DEFAULT 0, expires INTEGER, tree BLOB,
                body TEXT NOT NULL
            );
            CREATE UNIQUE INDEX "\(table) by doc_id" ON "\(table)" (doc_id);
            CREATE UNIQUE INDEX "\(table) by sequence" ON "\(table)" (sequence);
            """
        )
        var sequence: Int64 = 0
        for document in documents { try insert(document, in: table, &sequence, isDeleted: false) }
        for document in documents where document.isDeleted {
            try insert(document, in: table, &sequence, isDeleted: true)
        }
        try run("DELETE FROM \"\(table)\" WHERE expires < 1795219200000")
        collections[name] = QueryCollection(name: name, table: table)
    }

    private func insert(
        _ document: GoldenCorpus.Document,
        in table: String,
        _ sequence: inout Int64,
        isDeleted: Bool
    ) throws {
        sequence += 1
        let bindings: [QueryBinding] = [
            .text(document.id), .integer(sequence), .text("1-0123456789012345678901234567890123456789"),
            .integer(isDeleted ? 1 : 0), document.expires.map(QueryBinding.integer) ?? .null,
            .text(isDeleted ? "{}" : document.body.description),
        ]
        let sql =
            "INSERT OR REPLACE INTO \"\(table)\" (doc_id, sequence, revision, flags, expires, body) VALUES (?, ?, ?, ?, ?, ?)"
        _ = try step(sql, bindings, stage: "load") { _ in }
    }

    private func bind(_ statement: OpaquePointer?, _ bindings: [QueryBinding]) {
        for (index, binding) in bindings.enumerated() {
            let place = Int32(index + 1)
            switch binding {
            case .null: sqlite3_bind_null(statement, place)
            case .integer(let value): sqlite3_bind_int64(statement, place, value)
            case .double(let value): sqlite3_bind_double(statement, place, value)
            case .text(let value):
                sqlite3_bind_text(statement, place, value, Int32(value.utf8.count), Self.transient)
            case .blob(let value):
                sqlite3_bind_blob(statement, place, value, Int32(value.count), Self.transient)
            }
        }
    }

    private func step(
        _ sql: String,
        _ bindings: [QueryBinding],
        stage: String,
        _ row: (OpaquePointer?) -> Void
    ) throws {
        var statement: OpaquePointer?
        guard sqlite3_prepare_v2(connection, sql, -1, &statement, nil) == SQLITE_OK else {
            throw failure(stage == "run" ? "compile" : stage)
        }
        defer { sqlite3_finalize(statement) }
        bind(statement, bindings)
        var code = sqlite3_step(statement)
        while code == SQLITE_ROW {
            row(statement)
            code = sqlite3_step(statement)
        }
        guard code == SQLITE_DONE else { throw failure(stage) }
    }

    private static func value(_ statement: OpaquePointer?, _ column: Int32) -> JSONValue? {
        func bytes() -> [UInt8] {
            let start = sqlite3_column_blob(statement, column)
            return Array(
                UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, column)))
            )
        }
        switch sqlite3_column_type(statement, column) {
        case SQLITE_INTEGER: return .number(.integer(sqlite3_column_int64(statement, column)))
        case SQLITE_FLOAT:
            let double = sqlite3_column_double(statement, column)
            return double.isFinite
                ? .number(.double(double)) : ["$double": .string(double > 0 ? "inf" : "-inf")]
        case SQLITE_TEXT: return .string(String(decoding: bytes(), as: UTF8.self))
        case SQLITE_BLOB:
            let text = bytes()
            return (try? JSONElement(parsing: text))?.value ?? .string("not JSON: \(text)")
        default: return nil
        }
    }

    /// Asks a question.
    func answer(_ text: String, _ parameters: JSONElement?) throws -> Answer {
        let query: TranslatedQuery
        do throws(QueryError) {
            query = try QueryCompiler.compile(
                text,
                catalog: QueryCatalog(databaseName: "golden", collections: collections.values)
            )
        } catch {
            throw Failure(stage: "compile", message: error.message, position: error.position)
        }
        if let name = parameters?.members.map(\.key).first(where: {
            !query.parameterNames.contains(ExactText($0))
        }) {
            throw Failure(stage: "run", message: "no parameter \(name)")
        }
        let bindings = query.parameters.map { $0.binding(for: parameters?[$0.name]?.value) }
        var rows: [JSONValue] = []
        try step(query.sql, bindings, stage: "run") { statement in
            var row = JSONObject()
            for (index, title) in query.columns.enumerated() {
                row[title] = Self.value(statement, Int32(index))
            }
            rows.append(.object(row))
        }
        var plan: [String] = []
        try step("EXPLAIN QUERY PLAN " + query.sql, bindings, stage: "run") { statement in
            plan.append(Self.value(statement, 3)?.string ?? "")
        }
        return Answer(columns: query.columns, rows: rows, plan: plan)
    }

    // MARK: Indexes

    /// Makes an index, and returns the statements that take it away.
    func makeIndex(_ fields: JSONElement, number: Int) throws -> [String] {
        let statements: IndexStatements
        do throws(QueryError) { statements = try define(fields, number: number) } catch {
            throw Failure(stage: "index", message: error.message, position: error.position)
        }
        for sql in statements.create { try run(sql) }
        return statements.drop
    }

    private func define(_ fields: JSONElement, number: Int) throws(QueryError) -> IndexStatements {
        let name = fields["name"]?.string ?? ""
        let expressions = fields["expressions"]?.string ?? ""
        let written = fields["collection"]?.string ?? ""
        guard let collectionName = written == "_" ? .default : CollectionName(path: written),
            let collection = collections[collectionName]
        else { throw QueryError(.invalidQuery, "no collection \(written)") }
        switch fields["type"]?.string {
        case "fulltext":
            let definition = FullTextIndexDefinition(
                name: name,
                expressions: expressions,
                condition: fields["where"]?.string,
                language: fields["language"]?.string,
                ignoresAccents: fields["ignoreAccents"]?.bool ?? false,
                stopWords: fields["stopWords"]?.string,
                disablesStemming: fields["disableStemming"]?.bool ?? false,
                table: "words \(number) \(name)"
            )
            let statements = try IndexTranslator.statements(definition, collection: collection)
            collections[collectionName]?.fullTextIndexes.append(definition)
            return statements
        case "array":
            let definition = ArrayIndexDefinition(
                name: name,
                path: fields["path"]?.string ?? "",
                expressions: expressions,
                table: "items \(number) \(name)"
            )
            let statements = try IndexTranslator.statements(definition, collection: collection, sqlName: name)
            collections[collectionName]?.arrayIndexes.append(definition)
            return statements
        default:
            return try IndexTranslator.statements(
                ValueIndexDefinition(
                    name: name,
                    expressions: expressions,
                    condition: fields["where"]?.string
                ),
                collection: collection,
                sqlName: name
            )
        }
    }

    func forgetIndexes(_ drop: [String]) throws {
        for sql in drop { try run(sql) }
        for name in collections.keys {
            collections[name]?.fullTextIndexes = []
            collections[name]?.arrayIndexes = []
        }
    }
}
