import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatStorage

/// `_revs_diff` and `_missing_revs` (protocol/couchdb.md §4.5).
struct RevisionsResource: Resource {
    let server: CouchDBServer

    /// `isOld`: whether the answer has the form of `_missing_revs`.
    func revisionsDifference(_ entry: Databases.Entry, _ exchange: Exchange, isOld: Bool) async throws
        -> Reply
    {
        try Self.requireJSON(exchange)
        guard let body = try await json(exchange), body.kind == .object else {
            throw CouchDBError.badRequest("Request body must be a JSON object")
        }
        let size = RequestJSON.indexSize(of: body)
        var repeated = try await work(exchange, size: size, done: size) { try Self.repeatedLists(in: body) }
        var (members, answer) = (body.members, Difference(isOld: isOld))
        while true {
            let page = Self.next(of: &members, &repeated)
            if page.isEmpty { break }
            try await part(exchange, done: answer.checked) { try answer.add(page, entry.renewed()) }
        }
        let amount = ReplicatingClients.Amount(checked: answer.checked, missing: answer.missing)
        server.clients.note(.push, entry, exchange, amount)
        return .json(200, bytes: answer.text)
    }

    /// How many documents, and revisions but for those of the last document, are compared at a time.
    private static let differencePage = 200

    /// A document with the lists of its revisions: several if the request names it more than once.
    private typealias Asked = (id: String, lists: [JSONElement])

    /// The next documents. One that is named again has all its lists at the first place.
    private static func next(
        of members: inout JSONElement.Members,
        _ repeated: inout [ExactText: [JSONElement]]
    ) -> [Asked] {
        var (page, count): ([Asked], Int) = ([], 0)
        while count < differencePage, let (id, list) = members.next() {
            // Most requests name each document once.
            let lists = repeated.isEmpty ? [list] : repeated.updateValue([], forKey: ExactText(id)) ?? [list]
            // Its lists were at an earlier place.
            if lists.isEmpty { continue }
            page.append((id, lists))
            count += lists.reduce(0) { $0 + max(1, $1.count) }
        }
        return page
    }

    /// Refuses a body that does not name revisions of documents, or too many.
    ///
    /// - Returns: the lists of those documents that are named more than once.
    private static func repeatedLists(in body: JSONElement) throws -> [ExactText: [JSONElement]] {
        var count = 0
        var (seen, repeated): (Set<ExactText>, [ExactText: [JSONElement]]) = ([], [:])
        for (id, list) in body.members {
            count += max(1, try revisions(list).count)
            guard count <= RequestJSON.maximumItems else {
                throw RequestJSON.tooMany(RequestJSON.maximumItems)
            }
            if !seen.insert(ExactText(id)).inserted { repeated[ExactText(id)] = [] }
        }
        if repeated.isEmpty { return [:] }
        for (id, list) in body.members { repeated[ExactText(id)]?.append(list) }
        return repeated
    }

    /// The answer to a request for what is missing, as text: values would take many times the memory.
    private struct Difference {
        let isOld: Bool
        private(set) var (checked, missing) = (0, 0)
        private var rows: [UInt8] = []
        private static let maximumBytes = 64 << 20

        init(isOld: Bool) { self.isOld = isOld }

        var text: [UInt8] {
            let object = Array("{".utf8) + rows + Array("}".utf8)
            return isOld ? Array("{\"missing_revs\":".utf8) + object + Array("}".utf8) : object
        }

        mutating func add(_ page: [Asked], _ entry: Databases.Entry) throws {
            let records = try entry.store.readManyRows { view in
                try page.map { try view.record($0.id, in: entry.handle) }
            }
            for ((id, lists), record) in zip(page, records) {
                checked += 1
                var revisions = try lists.flatMap { try RevisionsResource.revisions($0) }
                if lists.count > 1 {
                    var seen: Set<RevisionID> = []
                    revisions.removeAll { !seen.insert($0).inserted }
                }
                let branches = try record.flatMap { try entry.branches(of: $0, .named(revisions)) }
                guard let answer = RevisionsResource.missing(revisions, in: branches, isOld: isOld) else {
                    continue
                }
                missing += 1
                if !rows.isEmpty { rows.append(UInt8(ascii: ",")) }
                rows += JSONText(canonical: .string(id)).bytes
                rows.append(UInt8(ascii: ":"))
                rows += JSONText(canonical: answer).bytes
                // Documents may have a thousand leaves each, and the same one may be named again and again.
                guard rows.count <= Self.maximumBytes else {
                    throw CouchDBError(413, "too_large", "the answer is too large: send the request in parts")
                }
            }
        }
    }

    /// The revisions in a body that names some of each document.
    static func revisionLists(_ body: JSONElement) throws -> [(String, [RevisionID])] {
        var lists: [(String, [RevisionID])] = []
        lists.reserveCapacity(body.count)
        for (id, list) in body.members { lists.append((id, try revisions(list))) }
        return lists
    }

    private static func revisions(_ list: JSONElement) throws -> [RevisionID] {
        guard list.kind == .array else { throw CouchDBError.badRequest("Invalid list of revisions") }
        var revisions: [RevisionID] = []
        revisions.reserveCapacity(list.count)
        for item in list.items {
            guard let text = item.string else { throw CouchDBError.invalidRevision }
            revisions.append(try RevisionText.parse(text))
        }
        return revisions
    }

    /// The answer about a document; nil if nothing is missing.
    private static func missing(_ revisions: [RevisionID], in branches: DocumentBranches?, isOld: Bool)
        -> JSONValue?
    {
        let missing = revisions.filter { !(branches?.contains($0) ?? false) }
        guard let highest = missing.map(\.generation).max() else { return nil }
        let list = JSONValue.array(missing.map { .string($0.text) })
        guard !isOld else { return list }
        var entry: JSONValue = ["missing": list]
        let ancestors = branches?.leaves.filter { $0.id.generation < highest } ?? []
        if !ancestors.isEmpty {
            entry["possible_ancestors"] = .array(ancestors.map { .string($0.id.text) })
        }
        return entry
    }
}
