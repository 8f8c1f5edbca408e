/// The branching history of one document.
///
/// A node knows its parent; a leaf is a node without children. Every leaf is kept with its body. One leaf is the
/// winner, which every peer picks alike (``winner``).
package struct RevisionTree: Hashable, Sendable {
    /// What is known of a revision beside its name.
    package struct Flags: OptionSet, Hashable, Sendable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }

        /// A tombstone.
        package static let deleted = Flags(rawValue: 1)
        /// On a branch that a pull brought beside the current one and that nobody has resolved yet.
        package static let conflict = Flags(rawValue: 2)
        /// On a branch that was given up on purpose.
        package static let closed = Flags(rawValue: 4)
        /// The body refers to blobs.
        package static let hasBlobs = Flags(rawValue: 8)
    }

    /// One revision.
    package struct Node: Hashable, Sendable {
        package let id: RevisionID
        package var parent: RevisionID?
        package var flags: Flags
        /// Nil for ancestors whose body nobody needs.
        package var body: JSONText?

        package init(id: RevisionID, parent: RevisionID?, flags: Flags, body: JSONText?) {
            self.id = id
            self.parent = parent
            self.flags = flags
            self.body = body
        }

        package var isDeleted: Bool { flags.contains(.deleted) }
        package var isConflict: Bool { flags.contains(.conflict) }
    }

    /// The number of a remote database in this one.
    package typealias Remote = Int

    /// The nodes, in no particular order.
    package internal(set) var nodes: [Node] = []
    /// The revision last known to be the current one at each remote database (replication.md §12.3).
    package internal(set) var remotes: [Remote: RevisionID] = [:]

    /// How many ancestors of the current revision keep their bodies, for deltas to peers that pull. Not a part of what is
    /// stored.
    package var ancestorBodiesKept = 0

    package init() {}

    /// A tree put together from stored parts.
    package init(nodes: [Node], remotes: [Remote: RevisionID]) {
        self.nodes = nodes
        self.remotes = remotes
    }

    package var isEmpty: Bool { nodes.isEmpty }

    package func index(of id: RevisionID) -> Int? { nodes.firstIndex { $0.id == id } }

    package func node(_ id: RevisionID) -> Node? { nodes.first { $0.id == id } }

    package func contains(_ id: RevisionID) -> Bool { index(of: id) != nil }

    package func isLeaf(_ id: RevisionID) -> Bool { !nodes.contains { $0.parent == id } }

    /// The nodes without children.
    package var leaves: [Node] {
        let parents = Set(nodes.compactMap(\.parent))
        return nodes.filter { !parents.contains($0.id) }
    }

    /// The leaves that a pull brought and nobody has resolved yet, best first.
    package var conflicts: [Node] { leaves.filter(\.isConflict).sorted { Self.precedes($0, $1) } }

    /// The ancestors of a revision, newest first, without itself.
    package func ancestors(of id: RevisionID) -> [RevisionID] {
        var result: [RevisionID] = []
        var next = node(id)?.parent
        while let current = next {
            result.append(current)
            next = node(current)?.parent
        }
        return result
    }

    package func isAncestor(_ ancestor: RevisionID, of id: RevisionID) -> Bool {
        ancestor == id || ancestors(of: id).contains(ancestor)
    }
}

// MARK: - The winner

extension RevisionTree {
    /// The current revision: the leaf that every peer picks (replication.md §3).
    ///
    /// A branch that is not in conflict before one that is, live before deleted, open before closed, then the higher
    /// revision ID.
    package var winner: Node? { leaves.min { Self.precedes($0, $1) } }

    static func precedes(_ lhs: Node, _ rhs: Node) -> Bool {
        if lhs.isConflict != rhs.isConflict { return !lhs.isConflict }
        if lhs.isDeleted != rhs.isDeleted { return !lhs.isDeleted }
        let (lhsClosed, rhsClosed) = (lhs.flags.contains(.closed), rhs.flags.contains(.closed))
        if lhsClosed != rhsClosed { return !lhsClosed }
        return lhs.id > rhs.id
    }

    /// Makes the best branch an ordinary one if all that is left is in conflict.
    mutating func unflagWinner() {
        guard let winner, winner.isConflict else { return }
        clearConflict(from: winner.id)
    }

    /// Takes the conflict flag from a leaf and from its ancestors as far as it reaches.
    mutating func clearConflict(from leaf: RevisionID) {
        var next: RevisionID? = leaf
        while let id = next, let index = index(of: id), nodes[index].isConflict {
            nodes[index].flags.remove(.conflict)
            next = nodes[index].parent
        }
    }
}
