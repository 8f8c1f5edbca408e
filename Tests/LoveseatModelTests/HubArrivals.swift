import Crypto
import LoveseatModel
import Testing

/// The number of the hub in trees of tests.
let hub: RevisionTree.Remote = 1

/// The document of the trees.
private let documentID = "x"

private func sha1(_ bytes: [UInt8]) -> [UInt8] { Array(Insecure.SHA1.hash(data: bytes)) }

/// The content of a test's revision.
func body(_ number: Int) -> JSONText { JSONText(canonical: ["n": JSONValue(number)]) }

/// The ID of a copy on top of a hub's revision.
func copyID(_ original: RevisionID, _ origin: RevisionID, over parent: RevisionID) -> RevisionID {
    CopyName(original: original, origin: origin).id(over: parent, of: documentID, sha1: sha1)
}

/// Takes a revision in, live or, without a number, deleted.
func take(
    _ history: [RevisionID],
    _ number: Int? = nil,
    from sender: RevisionTree.PeerKind = .hub,
    in tree: inout RevisionTree,
    recognizesCopies: Bool = true,
    by policy: TreePolicy = .standard
) throws {
    try take(
        history,
        number.map(body),
        from: sender,
        in: &tree,
        recognizesCopies: recognizesCopies,
        by: policy
    )
}

/// Takes a revision in, live or, without a body, deleted.
func take(
    _ history: [RevisionID],
    _ body: JSONText?,
    from sender: RevisionTree.PeerKind = .hub,
    in tree: inout RevisionTree,
    recognizesCopies: Bool = true,
    by policy: TreePolicy = .standard
) throws {
    var arrival = RevisionArrival(
        history: history,
        flags: body == nil ? .deleted : [],
        body: body ?? .emptyObject,
        sender: sender
    )
    arrival.remote = sender == .hub ? hub : nil
    if recognizesCopies {
        arrival.isCopy = { CopyName.isCopy($0, over: $1, of: documentID, sha1: sha1) }
    }
    _ = try tree.insert(arrival, by: policy)
}

extension RevisionTree {
    /// Puts the current content on top of what the hub has, and returns the name of that.
    @discardableResult
    mutating func putOnHub(over parent: RevisionID, by policy: TreePolicy = .standard) throws -> RevisionID {
        let source = try #require(HubCopySource(over: parent, in: self))
        let copy =
            source.original(edit: parent) ?? source.name.id(over: parent, of: documentID, sha1: sha1)
        let isOriginal = !CopyName.isCopy(copy, over: parent, of: documentID, sha1: sha1)
        AcceptedCopy(id: copy, isOriginal: isOriginal, parent: parent, remote: hub)
            .insert(into: &self, by: policy)
        return copy
    }
}
