import Loveseat

/// Revisions that an argument names by their ID, or by its beginning.
enum RevisionArgument {
    static let help = "It may be abbreviated, as in 3-a1b2, if only one begins so."

    /// Returns the revision that an argument names; nil if there is none.
    ///
    /// `hint`: the command that lists them.
    ///
    /// - Throws: `badRevisionID` if the argument is not an ID, or the beginning of several.
    static func revision(_ text: String, of id: String, among known: [RevisionID], hint: String) throws
        -> RevisionID?
    {
        // The hyphen alone may be the end of what was typed.
        guard RevisionID(text) != nil || RevisionID(text + "0") != nil, text.contains("-") else {
            throw LoveseatError(
                .badRevisionID,
                "\"\(text)\" is not a revision ID, nor the beginning of one, such as 3-a1b2: see `loveseat \(hint)`"
            )
        }
        let found = known.filter { $0.text.utf8.starts(with: text.utf8) }
        // The ID of one may be the beginning of another one's.
        if let exact = found.first(where: { $0.text.isExactly(text) }) { return exact }
        guard found.count <= 1 else {
            throw LoveseatError(
                .badRevisionID,
                "\(text) is the beginning of several revisions of \"\(id)\": give more of the one that is meant, \(found.map(\.text).joined(separator: " or "))"
            )
        }
        return found.first
    }
}
