import HummingbirdCore
import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatStorage

/// `_find` and `_explain` (protocol/couchdb.md §4.9).
struct FindResource: Resource {
    let server: CouchDBServer

    private func findRequest(_ exchange: Exchange) async throws -> FindRequest {
        try Self.requireJSON(exchange)
        let body = try await json(exchange)
        try RequestJSON.checkConditions(body)
        return try FindRequest(body?.value ?? .null)
    }

    func find(_ entry: Databases.Entry, _ exchange: Exchange) async throws -> Reply {
        let request = try await findRequest(exchange)
        let plan = try FindPlan(request, among: try entry.indexes())
        let finding = Finding(request: request, plan: plan, entry: entry, self, exchange)
        let start = ContinuousClock.now
        let found = try await finding.run()
        let size = MemoryLayout<FindRequest.Bookmark>.stride + 100
        try exchange.memory.reserve(found.bookmarks.count * size)
        return .stream { writer in
            try await writer.write("{\"docs\":[\r\n")
            var last: FindRequest.Bookmark?
            var count = 0
            var done = 0
            while done < found.bookmarks.count {
                let (documents, seen) = try await finding.documents(found.bookmarks[done...], done: done)
                done += seen
                for (bookmark, document) in documents {
                    try await writer.write((count > 0 ? ",\r\n" : "") + document.description)
                    last = bookmark
                    count += 1
                }
            }
            try await writer.write("\r\n],\r\n\"bookmark\": ")
            try await writer.write(JSONValue.string(last?.text ?? "nil").description)
            if request.withStatistics {
                let time = start.duration(to: .now) / .milliseconds(1)
                let statistics: JSONValue = [
                    "total_keys_examined": JSONValue(found.examined),
                    "total_docs_examined": JSONValue(found.examined), "total_quorum_docs_examined": 0,
                    "results_returned": JSONValue(count), "execution_time_ms": .number(.double(time)),
                ]
                try await writer.write(",\r\n\"execution_stats\": \(statistics)")
            }
            let warnings = plan.warnings + found.warnings(returned: count)
            if !warnings.isEmpty {
                let text = JSONValue.string(warnings.joined(separator: "\n"))
                try await writer.write(",\r\n\"warning\": \(text)")
            }
            try await writer.write("}\r\n\n")
        }
    }

    func explain(_ entry: Databases.Entry, _ exchange: Exchange) async throws -> Reply {
        let request = try await findRequest(exchange)
        let plan = try FindPlan(request, among: try entry.indexes())
        let fields = JSONValue.array(request.fields.map { .string(Selector.text(of: $0)) })
        let sort = FindRequest.directions(of: request.sort, isDescending: request.isDescending)
        let indexable = request.selector.comparisons.keys.map { ExactText(Selector.text(of: $0)) }.sorted()
        let all = request.selector.requiredPaths.map { ExactText(Selector.text(of: $0)) }.sorted()
        let options: JSONValue = [
            "use_index": .array(request.useIndex.map { .string($0) }),
            "bookmark": .string(request.bookmark?.text ?? "nil"), "limit": JSONValue(request.limit),
            "skip": JSONValue(request.skip), "sort": sort, "fields": fields, "partition": "", "r": 1,
            "conflicts": .bool(request.withConflicts), "stale": false, "update": true, "stable": false,
            "execution_stats": .bool(request.withStatistics),
            "allow_fallback": .bool(request.allowsFallback),
        ]
        let candidates = plan.others.map { index -> JSONValue in
            let reason = index.designID == nil ? "unfavored_type" : "less_overlap"
            return [
                "index": index.description,
                "analysis": [
                    "usable": true, "reasons": [["name": .string(reason)]], "ranking": 1, "covering": nil,
                ],
            ]
        }
        var arguments: JSONValue = [
            "include_docs": true, "view_type": "map", "reduce": false, "partition": nil,
            "direction": request.isDescending ? "rev" : "fwd", "stable": false, "update": true,
            "conflicts": "undefined",
        ]
        if let range = plan.keyRange(of: request) {
            let isDescending = request.isDescending
            arguments["start_key"] = .array(isDescending ? range.end : range.start)
            arguments["end_key"] = .array(isDescending ? range.start : range.end)
        }
        return .json(
            200,
            [
                "dbname": .string(entry.name), "index": plan.index.description, "partitioned": false,
                "selector": request.selector.description, "opts": options, "limit": JSONValue(request.limit),
                "skip": JSONValue(request.skip), "fields": fields, "index_candidates": .array(candidates),
                "selector_hints": [
                    [
                        "type": "json", "indexable_fields": .array(indexable.map { .string($0.text) }),
                        "unindexable_fields": .array(
                            all.filter { !indexable.contains($0) }.map { .string($0.text) }
                        ),
                    ]
                ],
                "mrargs": arguments, "covering": false,
            ]
        )
    }
}

/// One run of a request.
struct Finding: Sendable {
    /// The places of the results, and how many documents were looked at.
    struct Found: Sendable {
        var bookmarks: [FindRequest.Bookmark] = []
        var examined = 0
        /// How many results are collected before those are dropped that cannot be part of the answer.
        fileprivate var sortAt = 1_000

        /// CouchDB warns if more than ten documents were examined for each result.
        func warnings(returned count: Int) -> [String] {
            guard examined > 0, count == 0 || examined > count * 10 else { return [] }
            return [
                "The number of documents examined is high in proportion to the number of results returned. Consider adding a more specific index to improve this."
            ]
        }
    }

    /// The maximum memory for the keys of results that have to be sorted, in bytes.
    private static let maximumKeys = 64 << 20

    let request: FindRequest
    let plan: FindPlan
    let entry: Databases.Entry
    /// The part of the index that is read: its first field, and what its values must pass.
    private let range: (field: Selector.FieldPath, comparisons: [(Set<Selector.Comparison>, JSONValue)])?
    /// See ``FindPlan/attachments(in:)``.
    private let attachments: (choose: Bool, areShown: Bool)
    private let resource: FindResource
    private let exchange: Exchange

    /// How many documents are read at a time, and how many bytes, but for the last document.
    private static let (pageCount, pageBytes) = (200, 1 << 20)

    init(
        request: FindRequest,
        plan: FindPlan,
        entry: Databases.Entry,
        _ resource: FindResource,
        _ exchange: Exchange
    ) {
        (self.resource, self.exchange) = (resource, exchange)
        self.request = request
        self.plan = plan
        self.entry = entry
        attachments = plan.attachments(in: request)
        range =
            plan.index.designID == nil
            ? nil
            : plan.index.fields.first.flatMap { field in
                request.selector.comparisons[field].map { (field, $0) }
            }
    }

    private var isSorted: Bool { plan.index.designID != nil }
    private var wanted: Int {
        request.skip.addingSaturated(request.limit)
    }

    func run() async throws -> Found {
        var found = Found()
        guard request.limit > 0 else { return found }
        if let candidates = try await candidates() {
            var done = 0
            while done < candidates.count {
                try Task.checkCancellation()
                let read = try await resource.naming(exchange, entry, done: done) { names in
                    let (records, read) = try records(
                        candidates[done...].prefix(Self.pageCount),
                        Self.pageBytes
                    )
                    _ = try match(records.compactMap(\.self), names, &found)
                    return read
                }
                done += read
            }
        } else {
            try await scan(&found)
        }
        trim(&found)
        found.bookmarks = Array(found.bookmarks.dropFirst(request.skip))
        return found
    }

    private func scan(_ found: inout Found) async throws {
        var listing = StoreReadTransaction.Listing()
        listing.isDescending = request.isDescending
        listing.limit = Self.pageCount
        if !isSorted, let bookmark = request.bookmark {
            listing.first = bookmark.id
            listing.includesFirst = false
        }
        var (done, isLast) = (0, false)
        while !isLast {
            try Task.checkCancellation()
            try await resource.naming(exchange, entry, done: done) { names in
                var (records, bytes): ([DocumentRecord], Int) = ([], 0)
                try entry.store.readRows { view in
                    try view.list(listing, in: entry.handle) { record in
                        records.append(record)
                        bytes += record.size.all
                        return bytes < Self.pageBytes
                    }
                }
                // It comes again once the MD5s are known.
                guard try match(records, names, &found) else { return }
                isLast =
                    (records.count < Self.pageCount && bytes < Self.pageBytes)
                    || (!isSorted && found.bookmarks.count >= wanted)
                listing.first = records.last?.id ?? listing.first
                listing.includesFirst = false
            }
            done += Self.pageCount
        }
    }

    /// Reads documents, until they have so many bytes, but for the last one. `count`: how many of the IDs were read.
    private func records(_ ids: some Sequence<String>, _ maximumBytes: Int) throws -> (
        records: [DocumentRecord?], count: Int
    ) {
        try entry.store.readRows { view in
            var (records, bytes): ([DocumentRecord?], Int) = ([], 0)
            for id in ids where bytes < maximumBytes {
                let record = try view.record(id, in: entry.handle)
                bytes += record?.size.all ?? 0
                records.append(record)
            }
            return (records, records.count)
        }
    }

    /// The IDs of the documents that an SQL index finds, in order; nil if there is none to use.
    private func candidates() async throws -> [String]? {
        let collection = entry.collection
        // With an access policy, a client may see another revision than the current one.
        guard entry.access == nil,
            let condition = CandidateCondition(request.selector, by: plan.index),
            try collection.indexes().contains(where: { $0.isExactly(plan.index.sqlName) })
        else { return nil }
        var run = try LoveseatCore.Query(idsIn: collection, where: condition.text)
        for (name, value) in condition.parameters { run.parameters[name] = value }
        var ids: DocumentSet = []
        for row in try await run.execute() { if let id = row.documentID { ids.insert(id) } }
        var next: UInt64? = 0
        while let after = next {
            let (more, following) = try entry.store.readRows {
                try $0.conflictedIDs(in: entry.handle, after: after)
            }
            ids.insert(contentsOf: more)
            next = following
        }
        return ids.sorted
    }

    /// Adds those of the documents that match. Returns false, and adds none, if the MD5s that this needs are not known.
    private func match(_ records: [DocumentRecord], _ names: ContentNames, _ found: inout Found) throws
        -> Bool
    {
        let entry = entry.renewed()
        let names = attachments.choose ? names : .stored
        let records = try entry.visible(records).filter { !$0.id.beginsExactly(with: "_design/") }
        if attachments.choose {
            for record in records { _ = try shown(record, entry, names) }
            if !names.unknown.isEmpty { return false }
        }
        for record in records {
            if !isSorted, found.bookmarks.count >= wanted { return true }
            guard let (value, _) = try shown(record, entry, names) else { continue }
            var keys: [JSONValue] = []
            for path in isSorted ? plan.index.fields : [] {
                guard let key = Selector.value(at: path, in: value) else { break }
                keys.append(key)
            }
            guard !isSorted || keys.count == plan.index.fields.count, isInRange(value),
                plan.index.partialFilter?.matches(value) ?? true
            else { continue }
            found.examined += 1
            guard request.selector.matches(value) else { continue }
            let bookmark = FindRequest.Bookmark(keys: keys, id: record.id)
            if let last = request.bookmark, !comesBefore(last, bookmark) { continue }
            found.bookmarks.append(bookmark)
            if isSorted, found.bookmarks.count >= found.sortAt { try sortEarly(&found) }
        }
        return true
    }

    /// Whether the index would have been read at this document.
    private func isInRange(_ value: JSONValue) -> Bool {
        guard let range, let key = Selector.value(at: range.field, in: value) else { return true }
        return range.comparisons.allSatisfy { $0.0.contains(Selector.compare(key, $0.1, at: range.field)) }
    }

    /// The document as the client would get it, and its JSON.
    private func shown(_ record: DocumentRecord, _ entry: Databases.Entry, _ names: ContentNames) throws -> (
        JSONValue, RenderedDocument
    )? {
        guard let branches = try entry.branches(of: record), !branches.winner.isDeleted else { return nil }
        var options = DocumentOptions()
        options.withConflicts = request.withConflicts
        let rendered = DocumentRenderer(options: options, blobs: entry.store.blobs, names: names)
            .render(branches.winner, of: record.id, in: branches)
        return (try JSONElement(parsing: rendered.bytes).value, rendered)
    }

    /// The documents at the next places, if they still match, with the fields that the client wants. `done`: how many places there were
    /// before. `seen`: how many places these are.
    func documents(_ places: ArraySlice<FindRequest.Bookmark>, done: Int) async throws -> (
        documents: [(FindRequest.Bookmark, JSONText)], seen: Int
    ) {
        let found = try await resource.naming(exchange, entry, done: done) { names in
            try documents(places, attachments.areShown ? names : .stored)
        }
        try await entry.grant(found.documents.map(\.0.id))
        return found
    }

    private func documents(_ places: ArraySlice<FindRequest.Bookmark>, _ names: ContentNames) throws -> (
        documents: [(FindRequest.Bookmark, JSONText)], seen: Int
    ) {
        let entry = entry.renewed()
        let (records, seen) = try records(places.prefix(100).lazy.map(\.id), PacedWriter.maximumBytes)
        var documents: [(FindRequest.Bookmark, JSONText)] = []
        for (place, record) in zip(places, records) {
            guard let record, !record.isDeleted, try entry.visible([record]).count == 1,
                let (value, rendered) = try shown(record, entry, names), request.selector.matches(value)
            else { continue }
            let text =
                request.fields.isEmpty
                ? JSONText(trusted: rendered.bytes) : JSONText(canonical: projected(value))
            documents.append((place, text))
        }
        return (documents, seen)
    }

    private func projected(_ value: JSONValue) -> JSONValue {
        var result: JSONValue = [:]
        for path in request.fields {
            guard let field = Selector.value(at: path, in: value) else { continue }
            Self.set(field, at: path[...], in: &result)
        }
        return result
    }

    private static func set(_ value: JSONValue, at path: ArraySlice<ExactText>, in target: inout JSONValue) {
        guard let name = path.first?.text else { return target = value }
        var inner = target[name] ?? [:]
        if inner.object == nil { inner = [:] }
        set(value, at: path.dropFirst(), in: &inner)
        target[name] = inner
    }

    // MARK: Order

    private func comesBefore(_ one: FindRequest.Bookmark, _ other: FindRequest.Bookmark) -> Bool {
        for (key, otherKey) in zip(one.keys, other.keys) {
            switch Collation.compare(key, otherKey) {
            case .before: return !request.isDescending
            case .after: return request.isDescending
            case .same: continue
            }
        }
        return request.isDescending ? other.id.bytesPrecede(one.id) : one.id.bytesPrecede(other.id)
    }

    /// Makes room, at most once for each doubling of the results.
    private func sortEarly(_ found: inout Found) throws(CouchDBError) {
        trim(&found)
        found.sortAt = max(1_000, found.bookmarks.count * 2)
        let bytes = found.bookmarks.reduce(0) { $0 + $1.text.utf8.count }
        guard bytes <= Self.maximumKeys else {
            throw CouchDBError(413, "too_large", "the results do not fit in memory: use a smaller limit")
        }
    }

    /// Sorts the results, and keeps those that can be part of the answer.
    private func trim(_ found: inout Found) {
        if isSorted { found.bookmarks.sort(by: comesBefore) }
        if found.bookmarks.count > wanted { found.bookmarks.removeLast(found.bookmarks.count - wanted) }
    }
}
