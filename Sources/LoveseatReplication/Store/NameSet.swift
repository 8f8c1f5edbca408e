private import LoveseatModel

/// A set of names that uses a limited amount of memory.
package struct NameSet: Sendable {
    private var names: DocumentSet = []
    private var bytesLeft: Int
    private var isFull = false

    package init(bytes: Int) { bytesLeft = bytes }

    package func contains(_ name: String) -> Bool { names.contains(name) }

    /// Whether a name is there, or did not fit.
    package func mayContain(_ name: String) -> Bool { isFull || names.contains(name) }

    package mutating func insert(_ name: String) {
        // A string in a set takes some 24 bytes beside its own.
        let cost = name.utf8.count + 24
        guard cost <= bytesLeft else { return isFull = true }
        if names.insert(name) { bytesLeft -= cost }
    }

    package mutating func remove(_ name: String) {
        if names.remove(name) { bytesLeft += name.utf8.count + 24 }
    }
}
