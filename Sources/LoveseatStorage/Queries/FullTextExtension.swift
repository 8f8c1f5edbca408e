import GRDBSQLite
import LoveseatModel
import LoveseatQuery
import LoveseatText

/// The additions of full-text search to FTS5: the tokenizer `loveseat`, and `ls_rank`.
enum FullTextExtension {
    private final class Tokenizer {
        let tokenizer: FullTextTokenizer
        init(_ options: [String]) { tokenizer = FullTextTokenizer(options: options) }
    }

    static func register(on connection: OpaquePointer) -> Int32 {
        guard let api = api(of: connection) else { return SQLITE_ERROR }
        var tokenizer = fts5_tokenizer(
            xCreate: { _, arguments, count, made in
                var options: [String] = []
                for index in 0..<Int(count) {
                    if let text = arguments?[index] { options.append(String(cString: text)) }
                }
                made?.pointee = OpaquePointer(Unmanaged.passRetained(Tokenizer(options)).toOpaque())
                return SQLITE_OK
            },
            xDelete: { tokenizer in
                if let tokenizer { Unmanaged<Tokenizer>.fromOpaque(UnsafeRawPointer(tokenizer)).release() }
            },
            xTokenize: { tokenizer, context, flags, text, count, emit in
                guard let tokenizer, let emit else { return SQLITE_ERROR }
                let bytes = UnsafeRawBufferPointer(start: text, count: text == nil ? 0 : Int(count))
                let isPrefix =
                    flags & (FTS5_TOKENIZE_QUERY | FTS5_TOKENIZE_PREFIX)
                    == FTS5_TOKENIZE_QUERY | FTS5_TOKENIZE_PREFIX
                let tokens = Unmanaged<Tokenizer>.fromOpaque(UnsafeRawPointer(tokenizer))
                    ._withUnsafeGuaranteedRef {
                        $0.tokenizer.tokens(bytes.bindMemory(to: UInt8.self), isPrefix: isPrefix)
                    }
                for token in tokens {
                    var word = token.text
                    let code = word.withUTF8 { word in
                        word.address.withMemoryRebound(to: CChar.self, capacity: word.count) {
                            emit(context, 0, $0, Int32(word.count), Int32(token.start), Int32(token.end))
                        }
                    }
                    if code != SQLITE_OK { return code }
                }
                return SQLITE_OK
            }
        )
        let code = api.pointee.xCreateTokenizer(api, "loveseat", nil, &tokenizer, nil)
        guard code == SQLITE_OK else { return code }
        return api.pointee.xCreateFunction(
            api,
            "ls_rank",
            nil,
            { api, context, result, _, _ in FullTextExtension.rank(api, context, result) },
            nil
        )
    }

    private static func api(of connection: OpaquePointer) -> UnsafeMutablePointer<fts5_api>? {
        var statement: OpaquePointer?
        guard sqlite3_prepare_v3(connection, "SELECT fts5(?)", -1, 0, &statement, nil) == SQLITE_OK else {
            return nil
        }
        defer { sqlite3_finalize(statement) }
        return withUnsafeTemporaryAllocation(of: UnsafeMutablePointer<fts5_api>?.self, capacity: 1) { slot in
            slot.initialize(repeating: nil)
            sqlite3_bind_pointer(statement, 1, slot.baseAddress, "fts5_api_ptr", nil)
            sqlite3_step(statement)
            return slot[0]
        }
    }

    /// `ls_match(text, options)`: a search in FTS5's syntax.
    static func match(_ context: OpaquePointer?, _ values: UnsafeMutablePointer<OpaquePointer?>?) {
        guard let values else { return sqlite3_result_null(context) }
        guard let options = try? JSONElement(parsing: Array(SQLiteValues.bytes(values[1]))) else {
            return SQLiteValues.fail("the index's definition is damaged: make it again", context)
        }
        let columns = options[0]?.items.compactMap(\.string) ?? []
        let text: String
        switch SQLiteValues.read(values[0]) {
        case .string(let value): text = value
        case .integer(let value): text = String(value)
        case .double(let value): text = value.description
        case .bool(let value): text = value ? "1" : "0"
        case .missing, .null, .unsigned, .array, .object:
            return SQLiteValues.write(text: FullTextQuery.nothing, context)
        }
        do throws(QueryRunError) {
            let query = try FullTextQuery.translate(
                text,
                columns: columns,
                tokenizer: FullTextTokenizer(options: options.items.dropFirst().compactMap(\.string))
            )
            SQLiteValues.write(text: query, context)
        } catch {
            SQLiteValues.fail(error.message, context)
        }
    }

    // MARK: Rank

    /// How often each phrase occurs in each column, over all rows.
    private final class Totals {
        var hits: [Int64]
        init(_ count: Int) { hits = [Int64](repeating: 0, count: count) }
    }

    /// The sum, over phrases and columns, of the hits in this row divided by the hits in all rows.
    private static func rank(
        _ api: UnsafePointer<Fts5ExtensionApi>?,
        _ context: OpaquePointer?,
        _ result: OpaquePointer?
    ) {
        guard let api else { return sqlite3_result_null(result) }
        let functions = api.pointee
        let phrases = Int(functions.xPhraseCount(context))
        let columns = Int(functions.xColumnCount(context))
        guard let totals = totals(functions, context, phrases, columns) else {
            return sqlite3_result_error_code(result, SQLITE_ERROR)
        }
        var count: Int32 = 0
        guard functions.xInstCount(context, &count) == SQLITE_OK else {
            return sqlite3_result_double(result, 0)
        }
        var hits = [Int64](repeating: 0, count: totals.hits.count)
        for index in 0..<count {
            var (phrase, column, offset): (Int32, Int32, Int32) = (0, 0, 0)
            guard functions.xInst(context, index, &phrase, &column, &offset) == SQLITE_OK else { continue }
            let place = Int(phrase) * columns + Int(column)
            if hits.indices.contains(place) { hits[place] += 1 }
        }
        // One phrase at a time, so that equal ranks come out equal.
        var rank = 0.0
        for (own, all) in zip(hits, totals.hits) where own > 0 && all > 0 {
            rank += Double(own) / Double(all)
        }
        sqlite3_result_double(result, rank)
    }

    /// Counted once for a query, and kept with it.
    private static func totals(
        _ functions: Fts5ExtensionApi,
        _ context: OpaquePointer?,
        _ phrases: Int,
        _ columns: Int
    ) -> Totals? {
        if let kept = functions.xGetAuxdata(context, 0) {
            return Unmanaged<Totals>.fromOpaque(kept).takeUnretainedValue()
        }
        let totals = Totals(phrases * columns)
        for phrase in 0..<phrases {
            let part = Totals(columns)
            let code = functions.xQueryPhrase(
                context,
                Int32(phrase),
                Unmanaged.passUnretained(part).toOpaque(),
                { api, context, data in
                    guard let api, let data else { return SQLITE_ERROR }
                    var count: Int32 = 0
                    let code = api.pointee.xInstCount(context, &count)
                    guard code == SQLITE_OK else { return code }
                    Unmanaged<Totals>.fromOpaque(data)._withUnsafeGuaranteedRef { part in
                        for index in 0..<count {
                            var (phrase, column, offset): (Int32, Int32, Int32) = (0, 0, 0)
                            guard api.pointee.xInst(context, index, &phrase, &column, &offset) == SQLITE_OK
                            else { continue }
                            if part.hits.indices.contains(Int(column)) { part.hits[Int(column)] += 1 }
                        }
                    }
                    return SQLITE_OK
                }
            )
            guard code == SQLITE_OK else { return nil }
            for column in 0..<columns { totals.hits[phrase * columns + column] = part.hits[column] }
        }
        let kept = Unmanaged.passRetained(totals).toOpaque()
        let code = functions.xSetAuxdata(context, kept) {
            if let kept = $0 { Unmanaged<Totals>.fromOpaque(kept).release() }
        }
        return code == SQLITE_OK ? totals : nil
    }
}
