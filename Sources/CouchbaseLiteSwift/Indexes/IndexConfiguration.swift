import Foundation
import LoveseatCore

/// The contents of an index: a ``ValueIndexConfiguration``, a ``FullTextIndexConfiguration`` or an ``ArrayIndexConfiguration``.
public protocol IndexConfiguration {}

/// An index configuration of this module.
protocol EngineIndexConfiguration: IndexConfiguration {
    /// - Throws: `unsupported` for a kind of index that Loveseat does not have.
    func engine() throws -> any LoveseatCore.IndexConfiguration
}

/// An index of values, which speeds up comparisons, sorting and grouping by its expressions.
public struct ValueIndexConfiguration: IndexConfiguration, EngineIndexConfiguration, Sendable {
    /// The SQL++ expressions, the most important one first.
    public let expressions: [String]
    /// The SQL++ condition of the documents that are in the index; nil for all.
    public let `where`: String?

    /// Creates a configuration.
    public init(_ expressions: [String], where condition: String? = nil) {
        self.expressions = expressions
        self.where = condition
    }

    func engine() -> any LoveseatCore.IndexConfiguration {
        LoveseatCore.ValueIndexConfiguration(expressions, where: self.where)
    }
}

/// An index of the words in texts, for `MATCH`.
public struct FullTextIndexConfiguration: IndexConfiguration, EngineIndexConfiguration, Sendable {
    /// The default of ``ignoreAccents``, false.
    public static let defaultIgnoreAccents = false

    /// The properties with the texts.
    public let expressions: [String]
    /// The SQL++ condition of the documents that are in the index; nil for all.
    public let `where`: String?
    /// Whether letters are equal with and without accents.
    public let ignoreAccents: Bool
    /// The language of the texts, such as `en`, by which words are reduced to their stems. Nil is the current locale's language; an empty
    /// text keeps words as they are.
    public let language: String?

    /// Creates a configuration. A nil `ignoreAccents` means its default.
    public init(
        _ expressions: [String],
        where condition: String? = nil,
        ignoreAccents: Bool? = defaultIgnoreAccents,
        language: String? = nil
    ) {
        self.expressions = expressions
        self.where = condition
        self.ignoreAccents = ignoreAccents ?? Self.defaultIgnoreAccents
        self.language = language
    }

    func engine() -> any LoveseatCore.IndexConfiguration {
        LoveseatCore.FullTextIndexConfiguration(
            expressions,
            where: self.where,
            ignoreAccents: ignoreAccents,
            language: language ?? Locale.current.language.languageCode?.identifier
        )
    }
}

/// An index of the items of arrays, for `UNNEST` over the same path.
public struct ArrayIndexConfiguration: IndexConfiguration, EngineIndexConfiguration, Sendable {
    /// The path of the array, with `[]` between levels: `reviews` or `reviews[].useful`.
    public let path: String
    /// The SQL++ expressions of an item; nil for the item itself.
    public let expressions: [String]?

    /// Creates a configuration. Expressions that are empty end the program.
    public init(path: String, expressions: [String]? = nil) {
        if let expressions, expressions.isEmpty || expressions.contains(where: \.isEmpty) {
            programmerError("an array index needs expressions that are not empty, or nil for the items")
        }
        self.path = path
        self.expressions = expressions
    }

    func engine() -> any LoveseatCore.IndexConfiguration {
        LoveseatCore.ArrayIndexConfiguration(path: path, expressions: expressions)
    }
}
