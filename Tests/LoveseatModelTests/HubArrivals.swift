import LoveseatModel

/// The number of the hub in trees of tests.
let hub: RevisionTree.Remote = 1

/// The content of a test's revision.
func body(_ number: Int) -> JSONText { JSONText(canonical: ["n": JSONValue(number)]) }

/// Takes a revision in, live or, without a number, deleted.
///
/// `named`: the IDs that local edits to these contents would have.
func take(
    _ history: [RevisionID],
    _ number: Int? = nil,
    from sender: RevisionTree.PeerKind = .hub,
    named names: [Int: RevisionID] = [:],
    in tree: inout RevisionTree
) throws {
    var arrival = RevisionTree.Arrival(
        history: history,
        flags: number == nil ? .deleted : [],
        body: number.map(body) ?? .emptyObject,
        sender: sender
    )
    arrival.remote = sender == .hub ? hub : nil
    let known = names.map { (body($0.key).canonical, $0.value) }
    arrival.name = { _, text in known.first { $0.0 == text.canonical }?.1 }
    _ = try tree.insert(arrival)
}
