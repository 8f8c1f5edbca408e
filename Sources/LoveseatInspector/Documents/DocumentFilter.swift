import LoveseatCore
import LoveseatModel

/// Which documents of a collection a list contains.
enum DocumentFilter: Hashable, Sendable {
    /// Those whose IDs begin with a text, which may be empty.
    case prefix(String)
    /// Those that meet a condition in SQL++.
    case condition(String)
    /// Those with revisions that contend.
    case conflicts
}

/// The positions in a filtered list, as it was at one moment. A page is found without reading what is in front of it.
struct DocumentPositions: Sendable {
    /// The distance between two landmarks.
    static let stride = 500
    /// The maximum number of IDs of a list that has no order of its own.
    static let maximumIDs = 100_000

    enum Kind: Sendable {
        /// Every 500th ID of a list in order of IDs.
        case landmarks([String])
        case ids([String])
    }

    var kind: Kind
    var count: Int
    /// Whether the list ends early, because it is too long.
    var isCut = false
}

extension DocumentPositions {
    /// Walks through the list once, in pieces, so that no transaction takes long.
    static func make(_ filter: DocumentFilter, in collection: LoveseatCore.Collection) async throws -> Self {
        switch filter {
        case .prefix(let prefix): return try await landmarks(prefix, in: collection)
        case .conflicts:
            let ids = try await Reading.run {
                try CollectionConflicts(collection).all(includingDecided: false).map(\.id)
            }
            return Self(
                kind: .ids(Array(ids.prefix(maximumIDs))),
                count: min(ids.count, maximumIDs),
                isCut: ids.count > maximumIDs
            )
        case .condition(let condition): return try await ids(condition, in: collection)
        }
    }

    private static func landmarks(_ prefix: String, in collection: LoveseatCore.Collection) async throws
        -> Self
    {
        var landmarks: [String] = []
        var count = 0
        var last: String?
        while true {
            let listing = DocumentListing(
                prefix: prefix,
                after: last.map { .id($0) },
                limit: stride
            )
            let ids = try await collection.documentIDs(listing)
            count += ids.count
            guard ids.count == stride, let end = ids.last else { break }
            landmarks.append(end)
            last = end
        }
        return Self(kind: .landmarks(landmarks), count: count)
    }

    private static func ids(_ condition: String, in collection: LoveseatCore.Collection) async throws -> Self
    {
        var query = try await Reading.run {
            try Query(idsIn: collection, where: condition, order: "meta().id")
        }
        query.deadline = QueryLimits.deadline
        var ids: [String] = []
        for try await row in query.rows() {
            guard ids.count < maximumIDs else { return Self(kind: .ids(ids), count: ids.count, isCut: true) }
            if let id = row.documentID { ids.append(id) }
        }
        return Self(kind: .ids(ids), count: ids.count)
    }

    /// The documents of a page.
    func page(_ filter: DocumentFilter, from offset: Int, limit: Int, in collection: LoveseatCore.Collection)
        async throws -> [Document]
    {
        switch kind {
        case .ids(let ids):
            return try await collection.documents(ids: Array(ids.dropFirst(offset).prefix(limit)))
        case .landmarks(let landmarks):
            guard case .prefix(let prefix) = filter else { return [] }
            let passed = min(offset / Self.stride, landmarks.count)
            var cursor = passed == 0 ? nil : DocumentCursor.id(landmarks[passed - 1])
            let skipped = offset - passed * Self.stride
            if skipped > 0 {
                let listing = DocumentListing(prefix: prefix, after: cursor, limit: skipped)
                let ids = try await collection.documentIDs(listing)
                guard ids.count == skipped, let last = ids.last else { return [] }
                cursor = .id(last)
            }
            return try await collection.documents(
                DocumentListing(prefix: prefix, after: cursor, limit: limit)
            )
        }
    }
}

/// The limits of queries that a page may ask for.
enum QueryLimits {
    static let deadline = Duration.seconds(20)
    static let maximumRows = 1_000
    static let maximumBytes = 4 << 20
}
