private import Crypto
package import LoveseatModel

/// Whether a revision's ID is the digest of its content, as it is for revisions made here, by other Loveseats and by Couchbase
/// Lite 3.3 and later. This must not change after a revision was stored.
package enum BodyDigest {
    /// Returns ``RowFlags/verified`` if the ID is that digest, and no flags for IDs that other software computed in
    /// another way.
    static func flags(
        of revision: RevisionID,
        parent: RevisionID?,
        isDeleted: Bool,
        body: JSONText
    ) -> RowFlags {
        matches(revision, parent: parent, isDeleted: isDeleted, body: body) ? .verified : []
    }

    static func matches(
        _ revision: RevisionID,
        parent: RevisionID?,
        isDeleted: Bool,
        body: JSONText
    ) -> Bool {
        guard revision.digestLength == 40, revision.generation == (parent?.generation ?? 0) &+ 1 else {
            return false
        }
        return digest(parent: parent, isDeleted: isDeleted, body: body)
            .withUnsafeBytes { revision.hasDigest($0) }
    }

    /// Returns the ID of a local revision.
    ///
    /// - Throws: ``LoveseatError/Code/badRevisionID`` if the parent has the highest possible generation.
    package static func revisionID(parent: RevisionID?, isDeleted: Bool, body: JSONText) throws(LoveseatError)
        -> RevisionID
    {
        guard parent?.generation != .max else {
            throw LoveseatError(
                .badRevisionID,
                "the document has the highest possible revision: purge it"
            )
        }
        return name(over: parent, isDeleted: isDeleted, body: body)
    }

    /// The ID of the tombstone with which format 2 and older closed a branch.
    package static func closingTombstone(over leaf: RevisionID) -> RevisionID {
        name(over: leaf, isDeleted: true, body: JSONText(canonical: ["closed": true]))
    }

    /// Whether a body is the one from which a verified revision was made; nil if its parent was pruned, so that nobody can tell.
    fileprivate static func matchesIfKnown(
        _ id: RevisionID,
        parent: RevisionID?,
        isDeleted: Bool,
        body: JSONText
    ) -> Bool? {
        guard id.generation &- 1 == parent?.generation ?? 0 else { return nil }
        return matches(id, parent: parent, isDeleted: isDeleted, body: body)
    }

    fileprivate static func name(over parent: RevisionID?, isDeleted: Bool, body: JSONText) -> RevisionID {
        digest(parent: parent, isDeleted: isDeleted, body: body).withUnsafeBytes {
            RevisionID(generation: (parent?.generation ?? 0) &+ 1, digestBytes: $0)
        }
    }

    private static func digest(parent: RevisionID?, isDeleted: Bool, body: JSONText) -> Insecure.SHA1Digest {
        var hash = Insecure.SHA1()
        RevisionID.withDigestPrefix(parent: parent, isDeleted: isDeleted) { hash.update(bufferPointer: $0) }
        body.bytes.withUnsafeBytes { hash.update(bufferPointer: $0) }
        return hash.finalize()
    }
}

extension RevisionTree.Node {
    /// Whether the stored body differs from the one from which the revision was made.
    package var isDamaged: Bool { matchesDigest == false }

    /// Whether the stored body is the one from which the revision was made; nil if the ID does not say that.
    fileprivate var matchesDigest: Bool? {
        guard flags.contains(.verified), let body else { return nil }
        return BodyDigest.matchesIfKnown(id, parent: parent, isDeleted: isDeleted, body: body)
    }
}

extension RevisionTree {
    /// All knowledge, for another database, without content that is damaged here.
    package var intactKnowledge: TreeKnowledge {
        var knowledge = knowledge
        knowledge.leaveOutBodies(where: \.isDamaged)
        return knowledge
    }
}

extension DocumentRecord {
    /// Whether the stored body differs from the one from which the revision was made. If the revision's ID does not say that, whether the
    /// body is not JSON.
    ///
    /// `tree`: nil if there is only the row.
    package func isDamaged(in tree: RevisionTree?) -> Bool {
        if let matches = matchesDigest(in: tree) { return !matches }
        return body.storedObject == nil
    }

    private func matchesDigest(in tree: RevisionTree?) -> Bool? {
        if let node = tree?.node(revision) { return node.matchesDigest }
        // The row says nothing of a parent.
        guard flags.contains(.verified) else { return nil }
        return BodyDigest.matchesIfKnown(revision, parent: nil, isDeleted: isDeleted, body: body)
    }

    /// The stored body, indexed.
    ///
    /// - Throws: `corruptData` if it is not a JSON object any more.
    package func element() throws(LoveseatError) -> JSONElement {
        guard let element = body.storedObject else { throw damage }
        return element
    }

    /// The error of a call that needs the stored body, which is damaged.
    package var damage: LoveseatError {
        LoveseatError(
            .corruptData,
            "the stored content of document \"\(id)\" is damaged: run `check`, and save the document anew or restore a backup"
        )
    }
}

extension JSONText {
    /// Text of a database, indexed; nil if it was damaged there, and is not a JSON object any more.
    package var storedObject: JSONElement? {
        let limits = JSONLimits(maximumDepth: .max, maximumBytes: .max)
        guard let element = try? JSONElement(scanning: bytes, limits: limits), element.kind == .object else {
            return nil
        }
        return element
    }
}

extension RevisionTree {
    /// The ID of a copy of the current revision on top of a hub's, and of its original; nil if there are no more generations. A hub that
    /// has the revision on which the original was made gets the original itself, unless it refused the original, or accepted it and does
    /// not have it.
    package func copy(of record: DocumentRecord, over hub: RevisionID, mayBeOriginal: Bool) -> (
        id: RevisionID, original: RevisionID
    )? {
        guard hub.generation < .max, let source = HubCopySource(over: hub, in: self) else { return nil }
        let edit = BodyDigest.name(over: hub, isDeleted: record.isDeleted, body: record.body)
        if mayBeOriginal, let original = source.original(edit: edit) { return (original, original) }
        return (source.name.id(over: hub, of: record.id, sha1: Hashing.sha1), source.name.original)
    }
}
