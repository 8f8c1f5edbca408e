public import LoveseatModel
import LoveseatStorage

/// The query for the documents of a collection that meet a condition with key paths.
struct ModelQuery<Model: DocumentModel>: Sendable {
    private let built: any BuiltQuery

    init(
        _ collection: Collection,
        _ condition: DocumentCondition<Model>,
        _ order: [DocumentOrder<Model>],
        _ limit: Int?,
        _ offset: Int
    ) {
        var parameters = QueryParameters()
        let columns = [Meta.id, Meta.revisionID, Meta.sequence].map(SelectResult.expression)
        let ordered = QueryBuilder.select(columns + [SelectResult.all()])
            .from(DataSource.collection(collection))
            .where(condition.tree.expression(&parameters))
            .orderBy(
                order.map {
                    let order = Ordering.expression($0.property.expression)
                    return $0.isDescending ? order.descending() : order.ascending()
                }
            )
        var built: any BuiltQuery = ordered
        if limit != nil || offset != 0 {
            let most = Expression.value(JSONValue(limit ?? .max))
            built = ordered.limit(most, offset: Expression.value(JSONValue(offset)))
        }
        built.parameters = parameters
        self.built = built
    }

    func query() throws(LoveseatError) -> Query { try built.makeQuery() }

    func query(in transaction: ReadTransaction) throws(LoveseatError) -> Query {
        try built.makeQuery(in: transaction)
    }

    /// The models of rows, which are read as the documents are.
    func models(_ rows: [QueryRow]) throws(LoveseatError) -> [Model] {
        var models: [Model] = []
        models.reserveCapacity(rows.count)
        for row in rows {
            guard let id = row[0]?.string, case .json(let body) = row.values[3] else {
                throw LoveseatError(.assertionFailed, "a row of a query for documents is not a document")
            }
            let document = Document(
                id: id,
                revisionID: row[1]?.string.flatMap { RevisionID($0) },
                sequence: row[2]?.int.map { UInt64(clamping: $0) } ?? 0,
                body: body
            )
            models.append(try document.decode())
        }
        return models
    }
}

extension DocumentCondition {
    /// The query for the number of documents of a collection that meet the condition.
    func counting(in collection: Collection) -> any BuiltQuery {
        var parameters = QueryParameters()
        var built = QueryBuilder.select(SelectResult.expression(Function.count()))
            .from(DataSource.collection(collection))
            .where(tree.expression(&parameters))
        built.parameters = parameters
        return built
    }
}

extension [QueryRow] {
    /// The only value of a query for a number of documents.
    fileprivate var number: UInt64 { UInt64(clamping: first?[0]?.int ?? 0) }
}

/// Finding documents by conditions with key paths.
extension Collection {
    /// Returns the documents that meet a condition, as values of a type.
    ///
    /// ```swift
    /// let liked = try await places.documents(as: Place.self, where: \.city == "Paris" && \.likes > 3, limit: 10)
    /// ```
    ///
    /// - Parameters:
    ///   - type: The type. Its ``DocumentModel/propertyNames`` name the properties of the condition.
    ///   - condition: The condition.
    ///   - order: The properties by which the documents are sorted. None is any order.
    ///   - limit: The maximum number of documents. Nil, the default, means no limit.
    ///   - offset: The number of documents that are left out at the beginning.
    /// - Returns: The values.
    /// - Throws: ``LoveseatError``: `invalidQuery` for a property without a name, or with one that is not a path; `encodingError` for a value
    ///   that cannot be encoded; `decodingError` if one of the documents does not fit the type; otherwise as `execute()` of ``Query``.
    public func documents<Model: DocumentModel>(
        as type: Model.Type = Model.self,
        where condition: DocumentCondition<Model>,
        orderBy order: [DocumentOrder<Model>] = [],
        limit: Int? = nil,
        offset: Int = 0
    ) throws(LoveseatError) -> [Model] {
        let query = ModelQuery(self, condition, order, limit, offset)
        return try query.models(try query.query().execute())
    }

    /// Returns the documents that meet a condition without blocking a thread of Swift's pool.
    public func documents<Model: DocumentModel>(
        as type: Model.Type = Model.self,
        where condition: DocumentCondition<Model>,
        orderBy order: [DocumentOrder<Model>] = [],
        limit: Int? = nil,
        offset: Int = 0
    ) async throws -> [Model] {
        let query = ModelQuery(self, condition, order, limit, offset)
        return try query.models(try await query.query().execute())
    }

    /// Returns the number of documents that meet a condition, as in `places.count(where: \Place.likes > 3)`. They need not fit the type.
    ///
    /// - Throws: As `documents(as:where:)`, except for `decodingError`.
    public func count<Model: DocumentModel>(
        of type: Model.Type = Model.self,
        where condition: DocumentCondition<Model>
    ) throws(LoveseatError) -> UInt64 {
        try condition.counting(in: self).makeQuery().execute().number
    }

    /// Counts the documents that meet a condition without blocking a thread of Swift's pool.
    public func count<Model: DocumentModel>(
        of type: Model.Type = Model.self,
        where condition: DocumentCondition<Model>
    ) async throws -> UInt64 {
        try await condition.counting(in: self).makeQuery().execute().number
    }
}

extension ReadTransaction {
    /// Returns the documents that meet a condition, as values of a type; see the call of the same name of ``Collection``.
    public func documents<Model: DocumentModel>(
        in collection: Collection,
        as type: Model.Type = Model.self,
        where condition: DocumentCondition<Model>,
        orderBy order: [DocumentOrder<Model>] = [],
        limit: Int? = nil,
        offset: Int = 0
    ) throws(LoveseatError) -> [Model] {
        let query = ModelQuery(collection, condition, order, limit, offset)
        return try query.models(try execute(query.query(in: self)))
    }

    /// Counts the documents that meet a condition; see the call of the same name of ``Collection``.
    public func count<Model: DocumentModel>(
        of type: Model.Type = Model.self,
        in collection: Collection,
        where condition: DocumentCondition<Model>
    ) throws(LoveseatError) -> UInt64 {
        try execute(condition.counting(in: collection).makeQuery(in: self)).number
    }
}

extension LiveModel {
    /// Creates a model of the documents that meet a condition with key paths; see ``DocumentCondition``.
    public convenience init<Model: DocumentModel & Sendable & SendableMetatype>(
        _ collection: Collection,
        as type: Model.Type = Model.self,
        where condition: DocumentCondition<Model>,
        orderBy order: [DocumentOrder<Model>] = [],
        limit: Int? = nil,
        offset: Int = 0
    ) where Value == [Model] {
        let query = ModelQuery(collection, condition, order, limit, offset)
        self.init {
            try query.query()
        } decode: {
            try query.models($0)
        }
    }
}
