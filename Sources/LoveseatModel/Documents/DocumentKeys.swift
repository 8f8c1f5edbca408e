/// Text that is equal to other text only if all its bytes are, as SQLite and peers compare the IDs of documents. Strings are equal as well
/// if they are only composed in another way: "é" is one character, or an "e" and an accent.
package struct ExactText: Hashable, Sendable {
    package let text: String

    package init(_ text: String) { self.text = text }

    // Equal bytes have equal hashes as strings, too.
    package static func == (one: Self, other: Self) -> Bool { one.text.isExactly(other.text) }
}

extension String {
    /// Whether all bytes are equal.
    package func isExactly(_ other: String) -> Bool {
        self == other && utf8.elementsEqual(other.utf8)
    }
}

/// Values by the IDs of documents. Not a type of its own: it would not be specialized in other modules, and each change of a value would allocate.
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
    package var sorted: [String] { ids.map(\.text).sorted() }

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
