/// Text that is equal to other text only if all its bytes are, as SQLite and peers compare the IDs of documents. Strings are equal even if
/// they are only composed in another way: "é" is one character, or an "e" and an accent.
package struct ExactText: Hashable, Sendable, Comparable, ExpressibleByStringLiteral {
    package let text: String

    package init(_ text: String) { self.text = text }
    package init(stringLiteral text: String) { self.init(text) }

    package static func == (one: Self, other: Self) -> Bool { one.text.isExactly(other.text) }
    package static func < (one: Self, other: Self) -> Bool { one.text.bytesPrecede(other.text) }
    package func hash(into hasher: inout Hasher) { text.hashBytes(into: &hasher) }
}

extension String {
    /// Whether all bytes are equal. Swift's own `==` also equates texts that only look the same.
    package func isExactly(_ other: String) -> Bool {
        var (one, other) = (self, other)
        return one.withUTF8 { one in
            other.withUTF8 { other in
                guard one.count == other.count else { return false }
                let (one, other) = (UnsafeRawBufferPointer(one), UnsafeRawBufferPointer(other))
                var index = 0
                while index + 8 <= one.count {
                    let word = one.loadUnaligned(fromByteOffset: index, as: UInt64.self)
                    guard word == other.loadUnaligned(fromByteOffset: index, as: UInt64.self) else {
                        return false
                    }
                    index += 8
                }
                while index < one.count {
                    guard one[index] == other[index] else { return false }
                    index += 1
                }
                return true
            }
        }
    }

    /// Whether the text begins with these bytes. Swift's own `hasPrefix` compares characters: for it, "a/" is not the beginning of a
    /// text in which an accent follows the slash.
    package func beginsExactly(with prefix: String) -> Bool { utf8.starts(with: prefix.utf8) }

    /// The text behind its beginning, of which `prefix` has the length.
    package func dropping(_ prefix: String) -> String {
        String(decoding: utf8.dropFirst(prefix.utf8.count), as: UTF8.self)
    }

    /// Whether these bytes come before the other's.
    package func bytesPrecede(_ other: String) -> Bool {
        var (one, other) = (self, other)
        return one.withUTF8 { one in
            other.withUTF8 { other in
                for index in 0..<min(one.count, other.count) where one[index] != other[index] {
                    return one[index] < other[index]
                }
                return one.count < other.count
            }
        }
    }

    func hashBytes(into hasher: inout Hasher) {
        var text = self
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}

extension String? {
    /// Whether both are nil, or all bytes are equal.
    package func isExactly(_ other: String?) -> Bool {
        guard let self, let other else { return self == nil && other == nil }
        return self.isExactly(other)
    }
}

/// Values by the IDs of documents. It is not a type, because that would not be specialized in other modules, and each change of a value
/// would allocate.
package typealias DocumentMap<Value> = [ExactText: Value]

/// The IDs of documents.
package struct DocumentSet: Hashable, Sendable, ExpressibleByArrayLiteral {
    private var ids: Set<ExactText> = []

    package init(_ ids: some Sequence<String>) { self.ids = Set(ids.map { ExactText($0) }) }
    package init(arrayLiteral elements: String...) { self.init(elements) }
    package init(minimumCapacity: Int) { ids.reserveCapacity(minimumCapacity) }

    package var isEmpty: Bool { ids.isEmpty }
    package var count: Int { ids.count }
    /// The IDs in order.
    package var sorted: [String] { ids.sorted().map(\.text) }

    package func contains(_ id: String) -> Bool { ids.contains(ExactText(id)) }

    /// Adds an ID; false if it was there.
    @discardableResult
    package mutating func insert(_ id: String) -> Bool { ids.insert(ExactText(id)).inserted }

    /// Removes an ID; false if it was not there.
    @discardableResult
    package mutating func remove(_ id: String) -> Bool { ids.remove(ExactText(id)) != nil }

    package mutating func subtract(_ other: DocumentSet) { ids.subtract(other.ids) }

    package mutating func insert(contentsOf other: some Sequence<String>) {
        for id in other { insert(id) }
    }
}
