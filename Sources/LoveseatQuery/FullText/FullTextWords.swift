/// The text of a value that full-text search reads.
package enum FullTextWords {
    /// A string as it is, a number by its digits, a boolean as T or F; all of these in an array or object, with blanks
    /// between them.
    package static func text(_ walker: JSONWalker, _ position: Int) -> String {
        var parts: [String] = []
        // Containers whose values are still to be read, the innermost last.
        var open: [JSONWalker.Children] = []
        func add(_ position: Int) {
            switch walker.kind(at: position) {
            case .string?: parts.append(walker.string(at: position))
            case .number?: parts.append(String(decoding: walker.text(at: position), as: UTF8.self))
            case .bool?: parts.append(walker.isTrue(at: position) ? "T" : "F")
            case .array?, .object?: open.append(walker.children(of: position))
            case .null?, nil: break
            }
        }
        add(position)
        while var children = open.popLast() {
            guard let child = children.next() else { continue }
            open.append(children)
            add(child.value)
        }
        return parts.joined(separator: " ")
    }
}
