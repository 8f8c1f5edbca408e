package import LoveseatModel

/// How much a document's row holds, in bytes.
package struct StoredSize: Sendable {
    package let tree: Int
    package let body: Int

    package var all: Int { tree.addingSaturated(body) }
    /// How many bytes the row takes in memory together with its decoded tree, which has the content of the leaves again.
    package var decoded: Int { all.addingSaturated(tree) }
}

/// A document's row. It is a class, since its parts would be reference-counted one by one where it is passed on.
package final class DocumentRecord: Sendable {
    package let row: Int64
    package let id: String
    package let sequence: UInt64
    package let revision: RevisionID
    package let flags: RowFlags
    /// The remote that is known to have the current revision; 0 for none. Others are in `marks`, or in the tree.
    package let synced: Int
    /// The marks of the collection.
    let marks: MarkRanges
    /// When the document expires, in milliseconds since 1970.
    package let expires: Int64?
    /// The rest of the tree (RevisionTree+Encoding.swift); nil if there is only the current revision.
    package let encodedTree: [UInt8]?
    package let body: JSONText

    init(
        row: Int64,
        id: String,
        sequence: UInt64,
        revision: RevisionID,
        flags: RowFlags,
        synced: Int,
        marks: MarkRanges,
        expires: Int64?,
        encodedTree: [UInt8]?,
        body: JSONText
    ) {
        self.row = row
        self.id = id
        self.sequence = sequence
        self.revision = revision
        self.flags = flags
        self.synced = synced
        self.marks = marks
        self.expires = expires
        self.encodedTree = encodedTree
        self.body = body
    }

    package var size: StoredSize { StoredSize(tree: encodedTree?.count ?? 0, body: body.bytes.count) }
    package var isDeleted: Bool { flags.contains(.deleted) }
    package var hasConflicts: Bool { flags.contains(.hasConflicts) }

    /// The version of the current revision; nil if it has none.
    package var version: Version? { encodedTree.flatMap { RevisionTreeDecoder.currentVersion(in: $0) } }

    /// The whole tree.
    ///
    /// - Throws: ``LoveseatError/Code/corruptRevisionData`` if the stored form cannot be read.
    package func tree() throws(LoveseatError) -> RevisionTree {
        var tree: RevisionTree
        if let encodedTree {
            let decoded = RevisionTreeDecoder.decode(
                encodedTree,
                currentBody: body,
                closing: BodyDigest.closingTombstone
            )
            guard let decoded else {
                throw LoveseatError(
                    .corruptRevisionData,
                    "the revision tree of document \"\(id)\" is damaged: run `check`"
                )
            }
            tree = decoded
        } else {
            tree = RevisionTree(nodes: [node], remotes: [:])
        }
        if flags.contains(.verified) { tree.noteVerified(revision) }
        if synced != 0 { tree.recordMark(of: synced, at: revision) }
        for remote in remotesByRange { tree.recordMark(of: remote, at: revision) }
        return tree
    }

    /// The remotes that have the current revision by the ranges of their marks.
    var remotesByRange: [Int] { marks.filter { $0.value.contains(sequence) }.map(\.key) }

    /// Whether a remote is known to have the current revision, as far as that can be seen without the tree.
    package func isSynced(_ remote: Int) -> Bool {
        synced == remote || marks[remote]?.contains(sequence) ?? false
    }

    /// The row's own revision, for which no parent is known.
    var node: RevisionTree.Node {
        var known = flags.treeFlags
        if flags.contains(.verified) { known.insert(.verified) }
        return RevisionTree.Node(id: revision, parent: nil, flags: known, body: body)
    }

    /// The digest of the document's knowledge, which another Loveseat compares with its own (docs/extensions.md); nil for a single line.
    package var knowledgeDigest: String? {
        storedDigest.map { $0.hexadecimalText }
    }

    /// The length of the digest after a stored tree of more than one line, in bytes.
    static let digestLength = 8

    private static func digest(_ summary: String) -> some Sequence<UInt8> {
        Hashing.sha1(Array(summary.utf8)).prefix(digestLength)
    }

    /// Whether another Loveseat with the same current revision has the same knowledge. `digest`: the digest that it sent; nil for a single
    /// line.
    package func knowsTheSame(as digest: String?) -> Bool {
        let mine = knowledgeDigest
        return mine == digest || (mine ?? lineDigest) == (digest ?? lineDigest)
    }

    /// Whether a leaf that peers of CouchDB's wire are shown has not come with its content.
    package func awaitsLeaf() throws(LoveseatError) -> Bool {
        flags.contains(.branched) ? try tree().rule.awaitsLeaf : false
    }

    private var lineDigest: String {
        Array(Self.digest(RevisionTree.summary(ofLine: revision))).hexadecimalText
    }

    /// The digest of a peer that has the same knowledge.
    package var comparableDigest: String { knowledgeDigest ?? lineDigest }

    /// A tree as its row holds it, with the digest of the knowledge; nil for no tree.
    ///
    /// `digest`: if it is known already.
    static func encode(
        _ tree: RevisionTree,
        current: RevisionTree.Node,
        isTold: Bool,
        digest known: [UInt8]? = nil
    ) -> [UInt8]? {
        let bytes = RevisionTreeEncoder.encode(tree, current: current)
        guard let bytes, isTold else { return bytes }
        return bytes + (known ?? Array(digest(tree.summary ?? RevisionTree.summary(ofLine: current.id))))
    }

    /// The same document with another tree, which has the same leaves.
    func replacing(_ tree: RevisionTree) throws(LoveseatError) -> DocumentRecord {
        guard let current = tree.node(revision) else { return self }
        let isTold = flags.contains(.branched)
        return DocumentRecord(
            row: row,
            id: id,
            sequence: sequence,
            revision: revision,
            flags: flags,
            synced: synced,
            marks: marks,
            expires: expires,
            encodedTree: Self.encode(
                tree,
                current: current,
                isTold: isTold,
                digest: isTold ? storedDigest : nil
            ),
            body: body
        )
    }

    /// The digest as the row holds it; nil if there is none.
    var storedDigest: [UInt8]? {
        guard flags.contains(.branched), let digest = encodedTree?.suffix(Self.digestLength),
            digest.count == Self.digestLength, digest.contains(where: { $0 != 0 })
        else { return nil }
        return Array(digest)
    }

    /// The revision that a remote is known to have as its current one.
    package func remoteAncestor(_ remote: Int) throws(LoveseatError) -> RevisionID? {
        if isSynced(remote) { return revision }
        guard let encodedTree else { return nil }
        if case .some(let mark) = RevisionTreeDecoder.mark(of: remote, in: encodedTree) { return mark }
        // The row has the form of an earlier version, or is damaged.
        return try tree().remotes[remote]
    }
}
