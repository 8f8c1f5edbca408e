import LoveseatModel
import LoveseatStorage

/// The configurations of an app, as the store keeps them.
extension IndexSpecification {
    /// - Throws: `invalidParameter` for a name that is not allowed, or a configuration without expressions.
    init(_ config: any IndexConfiguration, name: String) throws(LoveseatError) {
        guard !name.isEmpty, !name.utf8.contains(UInt8(ascii: "\"")), !name.utf8.contains(0) else {
            throw LoveseatError(
                .invalidParameter,
                "\"\(name)\" is not a valid name for an index: use at least one character, and no quotation mark"
            )
        }
        switch config {
        case let config as ValueIndexConfiguration:
            self.init(kind: .value, expressions: config.expressions)
            condition = config.where
        case let config as FullTextIndexConfiguration:
            self.init(kind: .fullText, expressions: config.expressions)
            condition = config.where
            ignoresAccents = config.ignoreAccents
            language = config.language
        case let config as ArrayIndexConfiguration:
            self.init(kind: .array, expressions: config.expressions ?? [])
            path = config.path
            if config.path.isEmpty || config.expressions?.isEmpty == true { throw Self.isEmpty(name) }
        default:
            throw LoveseatError(
                .invalidParameter,
                "\(type(of: config)) is not a kind of index: use ValueIndexConfiguration or one of its siblings"
            )
        }
        if expressions.isEmpty && kind != .array { throw Self.isEmpty(name) }
        if expressions.contains(where: { $0.allSatisfy(\.isWhitespace) }) { throw Self.isEmpty(name) }
    }

    private static func isEmpty(_ name: String) -> LoveseatError {
        LoveseatError(
            .invalidParameter,
            "index \"\(name)\" has an empty expression: name what it contains, such as a property"
        )
    }

    var configuration: any IndexConfiguration {
        switch kind {
        case .value: return ValueIndexConfiguration(expressions, where: condition)
        case .fullText:
            return FullTextIndexConfiguration(
                expressions,
                where: condition,
                ignoreAccents: ignoresAccents,
                language: language
            )
        case .array:
            return ArrayIndexConfiguration(path: path, expressions: expressions.isEmpty ? nil : expressions)
        }
    }
}
