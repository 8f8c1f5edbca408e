public import LoveseatModel
import LoveseatStorage

/// The contents of an index: a ``ValueIndexConfiguration``, a ``FullTextIndexConfiguration`` or an ``ArrayIndexConfiguration``.
public protocol IndexConfiguration: Sendable {}

/// An index of values, which speeds up comparisons, sorting and grouping by its expressions.
public struct ValueIndexConfiguration: IndexConfiguration, Hashable {
    /// The SQL++ expressions, such as `city` or `LOWER(name)`, the most important one first.
    public let expressions: [String]
    /// The SQL++ condition of the documents that are in the index, such as `type = 'hotel'`; nil for all.
    public let `where`: String?

    /// Creates a configuration. An index with a condition serves queries that have the same condition.
    public init(_ expressions: [String], where condition: String? = nil) {
        self.expressions = expressions
        self.where = condition
    }
}

/// An index of the words in texts, for `MATCH`.
public struct FullTextIndexConfiguration: IndexConfiguration, Hashable {
    /// The properties with the texts, each a path such as `description` or `address.city`.
    public let expressions: [String]
    /// The SQL++ condition of the documents that are in the index; nil for all.
    public let `where`: String?
    /// Whether letters are equal with and without accents. The default is false.
    public let ignoreAccents: Bool
    /// The language of the texts, such as `en`, by which words are reduced to their stems; nil for words as they are.
    public let language: String?

    /// Creates a configuration.
    public init(
        _ expressions: [String],
        where condition: String? = nil,
        ignoreAccents: Bool = false,
        language: String? = nil
    ) {
        self.expressions = expressions
        self.where = condition
        self.ignoreAccents = ignoreAccents
        self.language = language
    }
}

/// An index of the items of arrays, for `UNNEST` over the same path.
public struct ArrayIndexConfiguration: IndexConfiguration, Hashable {
    /// The path of the array, with `[]` between levels: `reviews` or `reviews[].useful`.
    public let path: String
    /// The SQL++ expressions of an item, such as `rating`; nil for the item itself.
    public let expressions: [String]?

    /// Creates a configuration.
    public init(path: String, expressions: [String]? = nil) {
        self.path = path
        self.expressions = expressions
    }
}

/// The name of an index, and its configuration.
package typealias NamedIndexConfiguration = (name: String, config: any IndexConfiguration)

/// Indexes, which make queries fast. They follow every change, also those that peers send, and are kept until they are deleted.
extension Collection {
    /// Creates an index, and fills it from the documents that exist.
    ///
    /// Does nothing if there is an index of this name and definition. An index of the same name with another definition is replaced. The
    /// call blocks the thread, and others cannot write meanwhile; reads go on.
    ///
    /// - Parameters:
    ///   - config: The contents of the index.
    ///   - name: The index's name, unique in the collection: not empty, without `"`.
    /// - Throws: ``LoveseatError``: `invalidParameter` for a name that is not allowed, or a configuration without expressions;
    ///   `invalidQuery` for an expression that is not one; `busy`, `notWriteable`, `notOpen`, `transactionNotClosed`; an error of the disk.
    public func createIndex(_ config: any IndexConfiguration, withName name: String) throws(LoveseatError) {
        let specification = try IndexSpecification(config, name: name)
        let store = try openStore()
        try DocumentStore.wrapping {
            try store.write(within: database.config.busyTimeout) {
                try $0.indexTable.create(name, specification, in: handle)
            }
        }
    }

    /// Creates an index on one of the database's own threads.
    ///
    /// - Parameters:
    ///   - config: The contents of the index.
    ///   - name: The index's name, as for the call without `await`.
    ///   - progress: Called now and then, on a thread of the database, with the share of the documents that were read, from 0 to 1.
    /// - Throws: As the call without `await`, and `CancellationError` if the task is cancelled, which leaves everything as it
    ///   was.
    public func createIndex(
        _ config: any IndexConfiguration,
        withName name: String,
        progress: (@Sendable (Double) -> Void)? = nil
    ) async throws {
        let specification = try IndexSpecification(config, name: name)
        let store = try openStore()
        do {
            try await store.writeFromTask(within: database.config.busyTimeout, isInterruptible: true) {
                try $0.indexTable.create(name, specification, in: handle, progress: progress)
            }
        } catch { throw Database.mapped(error) }
    }

    /// Deletes an index. Does nothing if there is none of this name.
    ///
    /// - Throws: ``LoveseatError``: `busy`, `notWriteable`, `notOpen`, `transactionNotClosed`; an error of the disk.
    public func deleteIndex(forName name: String) throws(LoveseatError) {
        let store = try openStore()
        try DocumentStore.wrapping {
            try store.write(within: database.config.busyTimeout) {
                try $0.indexTable.delete(name, in: handle)
            }
        }
    }

    /// Returns the names of the indexes, in order.
    ///
    /// - Throws: ``LoveseatError``: `notOpen`, `transactionNotClosed`.
    public func indexes() throws(LoveseatError) -> [String] { try storedIndexes().map(\.name) }

    /// Returns the configuration of an index, or nil if there is none of this name.
    ///
    /// - Throws: ``LoveseatError``: `notOpen`, `transactionNotClosed`.
    public func index(withName name: String) throws(LoveseatError) -> (any IndexConfiguration)? {
        try storedIndexes().first { $0.name.isExactly(name) }?.specification.configuration
    }

    /// The names and configurations of the indexes, in order of the names.
    package func indexConfigurations() throws(LoveseatError) -> [NamedIndexConfiguration] {
        try storedIndexes().map { ($0.name, $0.specification.configuration) }
    }

    private func storedIndexes() throws(LoveseatError) -> [StoredIndex] {
        let store = try openStore()
        return try DocumentStore.wrapping {
            try store.read(within: database.config.busyTimeout) { $0.indexes(of: handle) }
        }
    }
}
