import Loveseat

/// Revisions that an argument names by their ID or their version, or by the beginning of one.
enum RevisionArgument {
    static let help =
        "It may be abbreviated, as in 3-a1b2, if only one begins so. A version that `revs` prints names a revision, too."

    /// Returns the revision that an argument names; nil if there is none.
    ///
    /// `hint`: the command that lists them.
    ///
    /// - Throws: `badRevisionID` if the argument is neither an ID nor a version, or the beginning of several.
    static func revision(
        _ text: String,
        of id: String,
        among known: [CollectionHistory.TreeRevision],
        hint: String
    ) throws -> RevisionID? {
        if text.contains("@") { return try revision(withVersion: text, of: id, among: known) }
        // The hyphen alone may be the end of what was typed.
        guard RevisionID(text) != nil || RevisionID(text + "0") != nil, text.contains("-") else {
            throw LoveseatError(
                .badRevisionID,
                "\"\(text)\" is not a revision ID, nor the beginning of one, such as 3-a1b2, nor a version: see `loveseat \(hint)`"
            )
        }
        let found = known.map(\.id).filter { $0.text.utf8.starts(with: text.utf8) }
        // The ID of one may be the beginning of another one's.
        if let exact = found.first(where: { $0.text.isExactly(text) }) { return exact }
        if found.count > 1 { throw severalBegin(with: text, of: id, found.map(\.text)) }
        return found.first
    }

    /// Of revisions with one version, which are one state, the current one is meant, or one whose content is kept.
    private static func revision(
        withVersion text: String,
        of id: String,
        among known: [CollectionHistory.TreeRevision]
    ) throws -> RevisionID? {
        let found = known.filter { $0.vector?.current?.text.utf8.starts(with: text.utf8) == true }
        let versions = found.compactMap { $0.vector?.current }
        if let first = versions.first, let other = versions.first(where: { $0 != first }) {
            throw severalBegin(with: text, of: id, [first.text, other.text])
        }
        let meant = found.first(where: { $0.flags.contains("current") }) ?? found.first(where: \.hasBody)
        return (meant ?? found.first)?.id
    }

    private static func severalBegin(with text: String, of id: String, _ names: [String]) -> LoveseatError {
        LoveseatError(
            .badRevisionID,
            "\(text) is the beginning of several revisions of \"\(id)\": give more of the one that is meant, \(names.joined(separator: " or "))"
        )
    }
}
