import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatStorage

/// `_index` (protocol/couchdb.md §4.9).
struct IndexResource: Resource {
    let server: CouchDBServer

    func index(_ entry: Databases.Entry, _ exchange: Exchange) async throws -> Reply {
        guard exchange.method == "POST" else {
            let indexes = try entry.indexes()
            return .json(
                200,
                [
                    "total_rows": JSONValue(indexes.count),
                    "indexes": .array(indexes.map(\.description)),
                ]
            )
        }
        try Self.requireJSON(exchange)
        let body = try await json(exchange)
        try RequestJSON.checkConditions(body)
        let request = try IndexRequest(body?.value ?? .null)
        // One that was deleted is created again, as a new one is.
        let found = try await branches(of: request.designID, in: entry, for: exchange)
            .flatMap { $0.0.winner.isDeleted ? nil : $0.0.winner }
        let existing = found?.body.map { JSONElement($0).value }
        // Without a language, a design document is one of JavaScript.
        guard existing.map({ $0["language"] == "query" }) ?? true else {
            throw CouchDBError(
                400,
                "invalid_design_document",
                "\(request.designID) is not a design document of indexes"
            )
        }
        var design = existing ?? [:]
        var views = design["views"]?.object ?? [:]
        let exists = views[request.name] == request.view
        if !exists {
            views[request.name] = request.view
            design["language"] = "query"
            design["views"] = .object(views)
            try await save(design, request.designID, over: found?.id, isDeleted: false, entry)
        }
        try await followIndexes(MangoIndex.all(in: design, id: request.designID), entry)
        return .json(
            200,
            [
                "result": exists ? "exists" : "created", "id": .string(request.designID),
                "name": .string(request.name),
            ]
        )
    }

    /// `DELETE _index/{design document}/json/{name}`
    func deleteIndex(_ entry: Databases.Entry, _ rest: [String], _ exchange: Exchange) async throws -> Reply {
        var path = rest
        if path.first == "_design" { path.removeFirst() }
        guard path.count == 3, path[1] == "json" else { throw CouchDBError.missing }
        let designID = MangoIndex.designID(path[0])
        guard let found = try await branches(of: designID, in: entry, for: exchange)?.0.winner,
            !found.isDeleted,
            let body = found.body
        else { throw CouchDBError.missing }
        var design = JSONElement(body).value
        guard
            let index = MangoIndex.all(in: design, id: designID).first(where: { $0.name.isExactly(path[2]) }),
            var views = design["views"]?.object
        else { throw CouchDBError.missing }
        views[path[2]] = nil
        design["views"] = .object(views)
        try await save(
            views.isEmpty ? [:] : design,
            designID,
            over: found.id,
            isDeleted: views.isEmpty,
            entry
        )
        let collection = entry.collection
        let name = index.sqlName
        try await entry.store.writeFromTask(within: nil) {
            try $0.indexTable.delete(name, in: collection.handle)
        }
        return .ok
    }

    private func save(
        _ design: JSONValue,
        _ id: String,
        over parent: RevisionID?,
        isDeleted: Bool,
        _ entry: Databases.Entry
    ) async throws {
        var members = design
        members["_id"] = .string(id)
        if let parent { members["_rev"] = .string(parent.text) }
        if isDeleted { members["_deleted"] = true }
        let document = try IncomingDocument(try JSONElement(parsing: JSONText(canonical: members).bytes))
        let pins = BlobPins(entry.store.blobs)
        let prepared = try DocumentSaving.prepare(document, id: id, pins: pins)
        defer { withExtendedLifetime(pins) {} }
        _ = try await entry.write(prepared.change) {
            try DocumentSaving.save(prepared, isNewEdit: true, in: entry.handle, $0, over: $1)
        }
    }

    /// Creates the SQL index of each index that can have one.
    private func followIndexes(_ indexes: [MangoIndex], _ entry: Databases.Entry) async throws {
        for index in indexes {
            // One field is enough to find the candidates, and every one more would have to be written.
            guard let expression = index.fields.first.flatMap(CandidateCondition.expression) else { continue }
            let specification = ValueIndexConfiguration([expression])
            do {
                try await entry.collection.createIndex(specification, withName: index.sqlName)
            } catch let error as LoveseatError where error.code == .invalidQuery {
                // Without it, the documents are read one by one.
                continue
            }
        }
    }
}

extension Databases.Entry {
    /// The index of the IDs, and those that design documents describe.
    func indexes() throws -> [MangoIndex] {
        var listing = StoreReadTransaction.Listing()
        (listing.first, listing.last) = ("_design/", "_design0")
        listing.limit = 1_000
        var records: [DocumentRecord] = []
        try store.readRows { view in
            try view.list(listing, in: handle) { record in
                records.append(record)
                return true
            }
        }
        var indexes = [MangoIndex.ofIDs]
        for record in try visible(records) {
            guard let winner = try branches(of: record)?.winner, !winner.isDeleted,
                let body = winner.body
            else { continue }
            indexes += MangoIndex.all(in: JSONElement(body).value, id: record.id)
        }
        return indexes
    }
}
