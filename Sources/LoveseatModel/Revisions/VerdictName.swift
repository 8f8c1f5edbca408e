/// The revision ID that a verdict on a conflict creates. It is made of everything that the verdict was about (docs/decisions/0009).
///
/// The digest has 20 bytes: 12 of a claim, the first bit of which is set, so that it is not mistaken for the name of a copy, and 8 of a
/// check. The claim is the SHA-1 of ``format``, the ID that the revision would have as an edit, and the IDs of the revisions that were
/// given up, in order; the check is that of ``format``, the claim, and the ID of the parent. Peers with the same verdict compute the same
/// ID.
package enum VerdictName {
    /// The beginning of the text from which both parts are computed. Another format of the name has another number here.
    private static let format = "loveseat verdict 1"
    private static let claimLength = 12
    private static let checkLength = 8

    /// Returns the ID of a verdict's revision. `edit`: the ID that an edit with the same content would have.
    package static func id(
        ofEdit edit: RevisionID,
        over parent: RevisionID,
        givingUp others: [RevisionID],
        sha1: ([UInt8]) -> [UInt8]
    ) -> RevisionID {
        let inputs = [format, edit.text] + Set(others).sorted().map(\.text)
        var claim = Array(sha1(Array(inputs.joined(separator: ",").utf8)).prefix(claimLength))
        claim[0] |= 0x80
        return RevisionID(generation: edit.generation, digest: claim + check(claim, parent, sha1))
    }

    /// Whether a verdict created a revision on top of another one.
    package static func isVerdict(_ id: RevisionID, over parent: RevisionID, sha1: ([UInt8]) -> [UInt8])
        -> Bool
    {
        guard parent.generation < .max, id.generation == parent.generation + 1,
            id.digestLength == 2 * (claimLength + checkLength)
        else { return false }
        let claim = id.leadingDigest(claimLength)
        return id.leadingDigest(claimLength + checkLength).dropFirst(claimLength)
            .elementsEqual(check(claim, parent, sha1))
    }

    private static func check(_ claim: [UInt8], _ parent: RevisionID, _ sha1: ([UInt8]) -> [UInt8]) -> [UInt8]
    {
        Array(sha1(Array(format.utf8) + claim + Array(parent.text.utf8)).prefix(checkLength))
    }

    /// How many rounds of contradicting verdicts two leaves have come through. On top of both lines, each of so many revisions was added by
    /// a verdict, although another verdict gave up its parent or added another revision there.
    package static func disagreements(
        about one: RevisionID,
        and other: RevisionID,
        in tree: RevisionTree,
        sha1: ([UInt8]) -> [UInt8]
    ) -> Int {
        min(disagreements(about: one, tree, sha1), disagreements(about: other, tree, sha1))
    }

    private static func disagreements(
        about leaf: RevisionID,
        _ tree: RevisionTree,
        _ sha1: ([UInt8]) -> [UInt8]
    ) -> Int {
        let line = tree.line(leaf)
        return zip(line, line.dropFirst()).prefix { id, parent in
            guard isVerdict(id, over: parent, sha1: sha1) else { return false }
            if tree.closed.contains(tree.original(parent)) { return true }
            return tree.nodes.values.contains { node in
                node.parent == parent && node.id != id
                    && (node.isDeleted || isVerdict(node.id, over: parent, sha1: sha1))
            }
        }.count
    }
}
