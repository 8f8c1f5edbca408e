/// A collection whose elements have no order: two that are equal may hold them in different ones.
///
/// Their texts are written in the order of their bytes, so that equal values are equal texts.
protocol UnorderedElements {
    /// The parts of each element, which stay together; nil if this encodes as an object.
    var unorderedElements: [[any Encodable]]? { get }
}

extension Set: UnorderedElements where Element: Encodable {
    var unorderedElements: [[any Encodable]]? { map { [$0] } }
}

extension Dictionary: UnorderedElements where Key: Encodable, Value: Encodable {
    var unorderedElements: [[any Encodable]]? {
        switch Key.self {
        case is String.Type, is Int.Type, is any CodingKeyRepresentable.Type: nil
        default: map { [$0.key, $0.value] }
        }
    }
}
