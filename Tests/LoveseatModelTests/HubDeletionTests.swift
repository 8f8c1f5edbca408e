import LoveseatModel
import Testing

/// Deletions and old content that come from a hub, and what else stands there.
@Suite struct HubDeletionTests {
    private static let hub = 1

    private let old = RevisionID(generation: 1, digest: [0xDD])
    private let deletion = RevisionID(generation: 2, digest: [0xDE])
    private let anew = RevisionID(generation: 1, digest: [0xAA])

    private func body(_ number: Int) -> JSONText { JSONText(canonical: ["n": JSONValue(number)]) }

    private func take(
        _ history: [RevisionID],
        _ number: Int? = nil,
        named names: [Int: RevisionID] = [:],
        in tree: inout RevisionTree
    ) throws {
        var arrival = RevisionTree.Arrival(
            history: history,
            flags: number == nil ? .deleted : [],
            body: number.map(body) ?? .emptyObject,
            sender: .hub
        )
        arrival.remote = Self.hub
        let known = names.map { (body($0.key).canonical, $0.value) }
        arrival.name = { _, text in known.first { $0.0 == text.canonical }?.1 }
        _ = try tree.insert(arrival)
    }

    /// A gateway announces the deletion with which a document left a channel, also where the document was made anew since.
    @Test func `a late deletion of another document does not take the place of what the hub took`() throws {
        var tree = RevisionTree()
        tree.insertLocal(anew, parent: nil, flags: [], body: body(1))
        tree.recordMark(of: Self.hub, at: anew)
        try take([deletion, old], in: &tree)
        #expect(tree.current?.id == anew)
    }

    @Test func `a copy of what was deleted here gives way to what it was put on`() throws {
        var tree = RevisionTree()
        try take([old], 1, in: &tree)
        try take([deletion, old], in: &tree)
        try take([anew], 2, in: &tree)
        let copy = RevisionID(generation: 2, digest: [0xCC])
        try take([copy, anew], 1, named: [1: old], in: &tree)
        #expect(tree.current?.id == anew)
    }

    @Test func `a copy of what was deleted here stands where what it was put on is not here`() throws {
        var tree = RevisionTree()
        try take([old], 1, in: &tree)
        try take([deletion, old], in: &tree)
        let copy = RevisionID(generation: 2, digest: [0xCC])
        try take([copy, anew], 1, named: [1: old], in: &tree)
        #expect(tree.current?.id == copy)
    }

    @Test func `old content that is put back on top of an edit stands`() throws {
        let edit = RevisionID(generation: 2, digest: [0xEE])
        var tree = RevisionTree()
        try take([anew], 1, in: &tree)
        try take([edit, anew], 2, in: &tree)
        let again = RevisionID(generation: 3, digest: [0xAF])
        try take([again, edit], 1, named: [1: anew], in: &tree)
        #expect(tree.current?.id == again)
    }
}
