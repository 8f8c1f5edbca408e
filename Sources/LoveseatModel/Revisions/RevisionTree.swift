import LoveseatAssertions

/// The facts that a database knows about one document's history. They only grow, except for pruning. The current revision is a function of
/// them (docs/decisions/0001).
///
/// - A node knows its parent, or the nearest ancestor that is kept.
/// - A line is a revision with its ancestors. The oldest revision of a line, its origin, distinguishes documents that
///   were created under the same ID; pruning keeps it.
/// - A closed revision was given up by a peer that knew it.
/// - A copy is a revision that a database made for a hub: the content of one line on top of another. It has no author, so it represents its
///   original, and supersedes nothing.
/// - A version vector names a revision for peers that have versions, and says which versions its content includes.
package struct RevisionTree: Hashable, Sendable {
    /// A revision and its attributes.
    package struct Flags: OptionSet, Hashable, Sendable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }

        /// A tombstone.
        package static let deleted = Flags(rawValue: 1)
        /// A pulled leaf for which the app's resolver has not answered yet.
        package static let pending = Flags(rawValue: 2)
        /// The body refers to blobs.
        package static let hasBlobs = Flags(rawValue: 8)
        /// The ID was the digest of the content when the body was stored here.
        package static let verified = Flags(rawValue: 32)
        /// Another database has, or this one had, the revision as a leaf. It is sent, so that the other one gets its descendants. The flag
        /// is never sent to others.
        package static let joint = Flags(rawValue: 64)
        /// It gave way here to a hub's revision, and no peer that knew it decided that. The flag is never sent to others.
        package static let yielded = Flags(rawValue: 128)
        /// The flags that are not sent to others.
        static let ownAffairs: Flags = [.pending, .joint, .yielded]
    }

    /// One revision.
    package struct Node: Hashable, Sendable {
        package let id: RevisionID
        package internal(set) var parent: RevisionID?
        package internal(set) var flags: Flags
        /// Nil if the body is not needed, or has not arrived.
        package internal(set) var body: JSONText?
        /// The fingerprints of the pruned revisions between this one and its parent, the newest first; 0 where nothing is
        /// known of a generation. Never sent to others.
        var forgotten: [UInt32] = []

        package init(id: RevisionID, parent: RevisionID?, flags: Flags, body: JSONText?) {
            self.id = id
            self.parent = parent
            self.flags = flags
            self.body = body
        }

        package var isDeleted: Bool { flags.contains(.deleted) }
    }

    /// A state between two steps, in which two equal trees may differ.
    struct Passing<Value: Sendable>: Hashable, Sendable {
        var value: Value
        init(_ value: Value) { self.value = value }
        static func == (_: Self, _: Self) -> Bool { true }
        func hash(into _: inout Hasher) {}
    }

    /// The kinds of peer.
    package enum PeerKind: Hashable, Sendable {
        /// Another Loveseat. Both send each other their trees.
        case loveseat
        /// A passive peer with one line of revisions, which accepts only descendants of its current one.
        case hub
        /// A foreign peer that pushes to this database, for which this one is a hub.
        case client
        /// A peer that names revisions by versions and keeps one state of a document (docs/decisions/0015). It is sent neither trees nor copies.
        case versions
    }

    /// The default number of revisions that are kept of a line.
    package static let maximumDepth = 50

    /// The number of a remote database in this one.
    package typealias Remote = Int

    package internal(set) var nodes: [RevisionID: Node] = [:]
    /// The originals of the closed revisions, which need not be here.
    package internal(set) var closed: Set<RevisionID> = []
    /// The copies, with the original of each, abbreviated as long as it is not known. Only the set of copies is knowledge: everything else
    /// follows from their names.
    package internal(set) var copies: [RevisionID: RevisionID] = [:]
    /// The revision last known to be the current one at each remote database.
    package internal(set) var remotes: [Remote: RevisionID] = [:]
    /// The version vectors of the revisions that have one. All others have an implicit vector (docs/decisions/0015).
    package internal(set) var vectors: [RevisionID: VersionVector] = [:]

    /// Revisions that pruning put aside, for the caller to keep elsewhere. Not stored.
    var aside = Passing<[AsideRevision]>([])
    /// The leaves of both sides before the last merge. Not stored.
    var formerLeaves = Passing<Set<RevisionID>>([])
    package init() {}

    /// Creates a tree from stored parts.
    package init(nodes: some Sequence<Node>, remotes: [Remote: RevisionID]) {
        self.nodes.reserveCapacity(nodes.underestimatedCount)
        for node in nodes { self.nodes[node.id] = node }
        self.remotes = remotes
    }

    package var isEmpty: Bool { nodes.isEmpty }

    package func node(_ id: RevisionID) -> Node? { nodes[id] }

    package func contains(_ id: RevisionID) -> Bool { nodes[id] != nil }

    /// Records that a revision's ID is the digest of its content.
    package mutating func noteVerified(_ id: RevisionID) { nodes[id]?.flags.insert(.verified) }

    /// Closes a revision, which need not be here any more.
    package mutating func giveUp(_ id: RevisionID, by policy: TreePolicy) {
        closed.insert(original(id))
        policy.prune(&self)
    }

    /// Records whether a revision and its copies gave way here to a hub's revision.
    mutating func setYielded(_ original: RevisionID, _ isYielded: Bool) {
        for id in nodes.keys where self.original(id) == original {
            if isYielded { nodes[id]?.flags.insert(.yielded) } else { nodes[id]?.flags.remove(.yielded) }
        }
    }

    /// Replaces damaged content of a revision by the original content.
    package mutating func replaceContent(of id: RevisionID, with intact: Node) {
        guard nodes[id] != nil else {
            return impossible("revision \(id) is damaged, and not in the tree")
        }
        nodes[id]?.body = intact.body
        let content: Flags = [.deleted, .hasBlobs]
        nodes[id]?.flags.subtract(content)
        nodes[id]?.flags.formUnion(intact.flags.intersection(content))
    }

    package func isLeaf(_ id: RevisionID) -> Bool { !nodes.values.contains { $0.parent == id } }

    /// The nodes without children.
    package var leaves: [Node] {
        let parents = Set(nodes.values.compactMap(\.parent))
        return nodes.values.filter { !parents.contains($0.id) }
    }

    /// The leaves that wait for the app's resolver, the highest first.
    package var pending: [Node] {
        nodes.values.filter { $0.flags.contains(.pending) }.sorted { $0.id > $1.id }
    }

    /// A revision and its ancestors, newest first; empty for one that is not here.
    package func line(_ id: RevisionID) -> [RevisionID] {
        var line: [RevisionID] = []
        var next = nodes[id]
        while let node = next {
            line.append(node.id)
            next = node.parent.flatMap { nodes[$0] }
        }
        return line
    }

    /// The ancestors of a revision, newest first, without itself.
    package func ancestors(of id: RevisionID) -> [RevisionID] { Array(line(id).dropFirst()) }

    /// Whether a revision is on the line of another one.
    package func isAncestor(_ ancestor: RevisionID, of id: RevisionID) -> Bool {
        var next = nodes[id]
        while let node = next, node.id.generation >= ancestor.generation {
            if node.id == ancestor { return true }
            next = node.parent.flatMap { nodes[$0] }
        }
        return false
    }

    /// The youngest revision that is on both lines.
    package func commonAncestor(_ one: RevisionID, _ other: RevisionID) -> RevisionID? {
        let line = Set(line(one))
        return self.line(other).first { line.contains($0) }
    }

    /// The revision that a tombstone deletes, if it is still here: the nearest ancestor that is alive.
    package func deleted(by tombstone: RevisionID) -> Node? {
        line(tombstone).lazy.compactMap { nodes[$0] }.first { !$0.isDeleted }
    }

    /// Whether the tree is a single line without any other knowledge, as most documents have.
    package var isLine: Bool {
        guard closed.isEmpty, copies.isEmpty else { return false }
        guard nodes.count > 1 else { return true }
        if isChain { return true }
        var roots = 0
        for node in nodes.values where node.parent == nil { roots += 1 }
        return roots == 1 && Set(nodes.values.map(\.parent)).count == nodes.count
    }

    /// Whether all other revisions are ancestors of the highest one, as in nearly every document.
    private var isChain: Bool {
        guard var id = nodes.keys.max(by: <) else { return false }
        for _ in 1..<nodes.count {
            guard let parent = nodes[id]?.parent else { return false }
            id = parent
        }
        return nodes[id].map { $0.parent == nil } ?? false
    }

    /// Whether another Loveseat is sent more than the history of the current revision: revisions beside its line, or revisions deep in it
    /// that were a leaf somewhere.
    package var isTold: Bool { !isLine || nodes.values.contains { $0.flags.contains(.joint) } }
}

extension RevisionTree.Node {
    /// Whether two revisions have the same content: both are deleted, or their bodies are equal.
    package func saysTheSame(as other: Self) -> Bool {
        guard isDeleted == other.isDeleted else { return false }
        guard !isDeleted else { return true }
        guard let body, let otherBody = other.body else { return false }
        return body == otherBody || body.canonical == otherBody.canonical
    }
}
