import LoveseatCore

/// The contents of indexes. Couchbase Lite's own tests use it.
extension Collection {
    /// Returns the indexes: `name`, `type`, `lang`, and `expr`, the expressions with commas between them; if
    /// they have one, `where`, `path` and `language`.
    public func indexesInfo() throws -> [[String: Any]]? {
        try database.read(
            { try engine.indexConfigurations() },
            inBatch: { try $0.indexConfigurations(of: engine) }
        )
        .map { Self.info($0.name, $0.config) }
    }

    private static func info(_ name: String, _ config: any LoveseatCore.IndexConfiguration) -> [String: Any] {
        var info: [String: Any] = ["name": name, "lang": "n1ql"]
        switch config {
        case let config as LoveseatCore.ValueIndexConfiguration:
            info["type"] = "value"
            info["expr"] = config.expressions.joined(separator: ",")
            info["where"] = config.where
        case let config as LoveseatCore.FullTextIndexConfiguration:
            info["type"] = "fullText"
            info["expr"] = config.expressions.joined(separator: ",")
            info["where"] = config.where
            info["language"] = config.language
        case let config as LoveseatCore.ArrayIndexConfiguration:
            info["type"] = "array"
            info["expr"] = (config.expressions ?? []).joined(separator: ",")
            info["path"] = config.path
        default: break  // There are three kinds.
        }
        return info
    }
}
