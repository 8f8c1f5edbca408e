import LoveseatModel

/// A query as a tree, which the parser makes from text, and a builder makes without text.
package struct SelectQuery: Hashable, Sendable {
    package struct Result: Hashable, Sendable {
        package var expression: QueryExpression
        package var alias: String?
        package init(_ expression: QueryExpression, alias: String? = nil) {
            self.expression = expression
            self.alias = alias
        }
    }

    /// A collection, as written: one component or two. Sources are equal wherever they stand in a text.
    package struct Source: Hashable, Sendable {
        package var scope: String?
        package var name: String
        package var alias: String?
        package var position: Int?
        package init(scope: String? = nil, name: String, alias: String? = nil, at position: Int? = nil) {
            self.scope = scope
            self.name = name
            self.alias = alias
            self.position = position
        }

        package static func == (one: Source, other: Source) -> Bool {
            one.scope.isExactly(other.scope) && one.name.isExactly(other.name)
                && one.alias.isExactly(other.alias)
        }

        package func hash(into hasher: inout Hasher) {
            hasher.combine(scope.map { ExactText($0) })
            hasher.combine(ExactText(name))
            hasher.combine(alias.map { ExactText($0) })
        }
    }

    package enum JoinKind: Hashable, Sendable { case inner, left, cross }

    package enum Join: Hashable, Sendable {
        case collection(JoinKind, Source, on: QueryExpression?)
        case unnest(QueryExpression, alias: String?)
    }

    package struct Ordering: Hashable, Sendable {
        package var expression: QueryExpression
        package var isDescending: Bool
        package init(_ expression: QueryExpression, isDescending: Bool = false) {
            self.expression = expression
            self.isDescending = isDescending
        }
    }

    package var isDistinct = false
    package var results: [Result] = []
    package var source: Source
    package var joins: [Join] = []
    package var condition: QueryExpression?
    package var grouping: [QueryExpression] = []
    package var having: QueryExpression?
    package var order: [Ordering] = []
    package var limit: QueryExpression?
    package var offset: QueryExpression?

    package init(from source: Source) { self.source = source }
}
