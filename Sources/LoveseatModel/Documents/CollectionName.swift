/// The name of a collection together with the name of its scope.
public struct CollectionName: Hashable, Sendable, CustomStringConvertible {
    /// The scope's name; `_default` for the default scope.
    public let scope: String
    /// The collection's name within its scope.
    public let name: String

    /// The reserved name of the default scope and the default collection.
    public static let defaultPart = "_default"
    /// The name of the default collection, `_default._default`.
    public static let `default` = CollectionName(unchecked: defaultPart, defaultPart)

    private init(unchecked scope: String, _ name: String) {
        self.scope = scope
        self.name = name
    }

    /// Creates a name from its parts, or returns nil if one of them is not allowed: 1 to 251 of the characters `A–Z a–z
    /// 0–9 _ - %`, not beginning with `_` or `%`.
    ///
    /// The collection `_default` exists in the scope `_default` only.
    public init?(scope: String = defaultPart, name: String) {
        let isDefault = name == Self.defaultPart && scope == Self.defaultPart
        guard isDefault || Self.isValid(name), scope == Self.defaultPart || Self.isValid(scope) else {
            return nil
        }
        self.init(unchecked: scope, name)
    }

    /// Creates a name from `scope.collection`, or from `collection` in the default scope. Returns nil if a part is not
    /// allowed.
    public init?(path: some StringProtocol) {
        let parts = String(path).split(separator: "." as Character, omittingEmptySubsequences: false).map(
            String.init
        )
        switch parts.count {
        case 1: self.init(name: parts[0])
        case 2: self.init(scope: parts[0], name: parts[1])
        default: return nil
        }
    }

    /// The name as peers send it: `scope.collection`, or `collection` in the default scope.
    public var path: String { scope == Self.defaultPart ? name : "\(scope).\(name)" }

    /// The name with its scope, `scope.collection`.
    public var fullName: String { "\(scope).\(name)" }

    /// The name as ``fullName``.
    public var description: String { fullName }

    private static func isValid(_ name: String) -> Bool {
        guard (1...251).contains(name.utf8.count), let first = name.utf8.first,
            first != UInt8(ascii: "_"), first != UInt8(ascii: "%")
        else { return false }
        return name.utf8.allSatisfy {
            ($0 | 0x20) &- 0x61 <= 25 || $0 &- 0x30 <= 9 || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: "-")
                || $0 == UInt8(ascii: "%")
        }
    }
}

/// The rules for a document's ID.
package enum DocumentID {
    /// Whether an app may give a document this ID: 1 to 240 bytes, no `_` in front, no control characters.
    package static func isValid(_ id: String) -> Bool {
        (1...240).contains(id.utf8.count) && id.utf8.first != UInt8(ascii: "_")
            && id.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
    }

    /// Whether a peer may send this ID: 1 to 255 bytes, without a NUL.
    package static func isValidOnWire(_ id: String) -> Bool {
        (1...255).contains(id.utf8.count) && id.utf8.allSatisfy { $0 != 0 }
    }
}
