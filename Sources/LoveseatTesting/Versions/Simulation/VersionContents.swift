import LoveseatModel

/// Checks that a version has one content, wherever it is.
final class VersionContents {
    struct Content: Hashable {
        let isDeleted: Bool
        let body: JSONValue?

        init(isDeleted: Bool, _ body: JSONValue) {
            self.isDeleted = isDeleted
            self.body = isDeleted ? Optional.none : body
        }
    }

    private struct First {
        let content: Content
        let party: Int
    }

    private var known: [String: [Version: First]] = [:]
    /// Versions with several contents, which are reported once.
    private(set) var forged: [String: Set<Version>] = [:]

    /// A peer has a state of a document. Returns a sentence if its version has another content elsewhere.
    func note(_ version: Version, _ content: Content, of id: String, at party: Int) -> String? {
        guard let first = known[id]?[version] else {
            known[id, default: [:]][version] = First(content: content, party: party)
            return nil
        }
        if first.content == content || forged[id]?.contains(version) == true { return nil }
        forged[id, default: []].insert(version)
        return "TWO CONTENTS \(id) \(version): first at \(first.party), another one at \(party)"
    }
}
