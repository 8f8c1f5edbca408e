package import LoveseatModel

/// The versions that this database makes, and those that it receives, as a transaction writes them (docs/decisions/0015).
package struct VersionTable: WrittenTable {
    let transaction: StoreWriteTransaction

    /// Lets the database make versions from now on.
    ///
    /// - Returns: The database's name as an author.
    func begin() throws -> SourceID {
        if let versions = catalog.versions { return versions.author.source }
        let author = try VersionAuthor(SourceID.new(transaction.options))
        let versions = StoreVersions(author, limit: ClockReserve.limit(after: 0, wall: transaction.wall))
        try versions.save(in: database)
        try OpenNote(boot: transaction.options.system.bootID(), isDurable: transaction.isFullSync).save(
            in: database
        )
        transaction.replaceCatalog { $0.versions = versions }
        return author.source
    }

    /// Calls a closure with the database as an author of versions, and with the system's clock; nil if the database makes no versions.
    ///
    /// Changes take effect with the transaction.
    package func withAuthor<T, Failure>(
        _ body: (inout VersionAuthor, _ wall: UInt64) throws(Failure) -> T
    ) throws(Failure) -> T? {
        // Most databases make no versions.
        guard var versions = catalog.versions else { return nil }
        versions.noteMaking(wall: transaction.wall)
        let result = try body(&versions.author, transaction.wall)
        transaction.replaceCatalog { $0.versions = versions }
        return result
    }

    /// Returns the vector of an edit, a deletion or an undeletion of a state; nil if the database makes no versions.
    ///
    /// It never fails because of a clock. The state's versions are earlier, unless their author's clock was ahead and they were never shown to
    /// this clock.
    package func edited(_ vector: @autoclosure () -> VersionVector) throws -> VersionVector? {
        // Most databases make no versions.
        if catalog.versions == nil { return nil }
        let state = vector()
        do throws(VersionError) { return try edit(state) } catch {
            try renewSource(.lastTime)
            return try edit(state)
        }
    }

    /// Returns the vector of an edit of a leaf; nil if the database makes no versions.
    ///
    /// An edit of the current revision decides against all other candidates, so it includes their versions.
    func vector(ofEditOf parent: RevisionID, in tree: RevisionTree) throws -> VersionVector? {
        try edited(tree.versions.vectorToEdit(parent, givingUp: tree.versions.givenUp(byEditOf: parent)))
    }

    /// Returns the vector of a revision that a verdict has made; nil if the database makes no versions.
    ///
    /// `others`: the revisions that it gives up. `tree`: the tree before the verdict.
    func vector(
        ofVerdictOn parent: RevisionID,
        givingUp others: [RevisionID],
        in tree: RevisionTree
    ) throws -> VersionVector? {
        let lost = others.map { tree.versions.vectorToEdit($0) }.reduce(VersionVector()) {
            $0.united(with: $1)
        }
        let kept = tree.versions.vectorToEdit(parent)
        if lost.isEmpty || kept.isEmpty { return try edited(kept.united(with: lost)) }
        do throws(VersionError) {
            return try withAuthor { author, wall throws(VersionError) in
                try author.merge(kept, lost, wall: wall).pruned(wall: wall)
            }
        } catch {
            // One author made both. Versions that stand for revisions of trees have one author, too.
            return try edited(kept.united(with: lost))
        }
    }

    /// Returns the stored tree of a new document, which has a version; nil if the database makes no versions.
    func treeOfNew(_ revision: RevisionID, flags: RowFlags, body: JSONText) throws -> [UInt8]? {
        // Most databases make no versions, and a new document has no tree.
        guard let vector = try edited(VersionVector()) else { return nil }
        var tree = RevisionTree()
        let flags = flags.union(.verified).treeFlags
        RevisionEdit(id: revision, parent: nil, flags: flags, body: body, vector: vector)
            .insert(into: &tree, by: transaction.treePolicy)
        return RevisionTreeEncoder.encode(tree)
    }

    /// Has a verdict written into a tree, and gives the revisions that it makes their vectors.
    func deciding<T>(
        in tree: inout RevisionTree,
        _ write: (VerdictWriter, inout RevisionTree) throws -> T
    ) throws -> T {
        let before = tree
        let vectors = VerdictVectors()
        let writer = VerdictWriter(policy: transaction.treePolicy) { draft in
            let node = try self.makeNode(draft)
            vectors.made[node.id] = try self.vector(
                ofVerdictOn: draft.parent,
                givingUp: draft.givenUp,
                in: before
            )
            return node
        }
        let result = try write(writer, &tree)
        for (id, vector) in vectors.made { tree.addVector(vector, of: id) }
        return result
    }

    /// Names a revision that a verdict makes.
    func makeNode(_ draft: RevisionDraft) throws -> RevisionTree.Node {
        try draft.node(flags: transaction.rowFlags(of: draft.body, isDeleted: draft.isDeleted).treeFlags)
    }

    private func edit(_ vector: VersionVector) throws(VersionError) -> VersionVector? {
        // The caller has looked.
        guard var versions = catalog.versions else { return nil }
        versions.noteMaking(wall: transaction.wall)
        // The state was accepted when it arrived. If the system's clock was set back since, the edit is earlier than some of it.
        try? versions.author.see(vector, wall: transaction.wall)
        let edited = try versions.author.edit(vector, wall: transaction.wall).pruned(wall: transaction.wall)
        transaction.replaceCatalog { $0.versions = versions }
        return edited
    }

    /// Verifies a vector that a peer sent before it is stored, and lets later versions of this database have later times.
    ///
    /// If it names a version by this database that this database does not know, the database was put back to an earlier state, and goes on with
    /// another source: its next version would otherwise hide the unknown one. A peer that may write can provoke this, so it happens once for
    /// each peer and opening.
    ///
    /// - Parameters:
    ///   - vector: The vector as it arrived.
    ///   - known: The vectors of the document that are here; nil if the document is not here.
    ///   - id: The document, for the log.
    ///   - peer: Names the peer; the same for all anonymous ones.
    /// - Throws: ``VersionError`` if a time in the vector is not valid, or too far ahead. Then nothing changes.
    package func accept(
        _ vector: VersionVector,
        over known: (some Sequence<VersionVector>)?,
        of id: String,
        from peer: String
    ) throws {
        var author = try catalog.versions?.author ?? VersionAuthor(SourceID(high: 0, low: 1))
        try author.see(vector, wall: transaction.wall)
        if catalog.versions == nil { return }
        try renewSource(ifUnknown: vector, over: known, of: id, from: peer)
        try transaction.replaceCatalog {
            if let source = $0.versions?.author.source {
                $0.versions?.author = try VersionAuthor(source, clock: author.clock)
            }
        }
    }

    /// Verifies the vectors that came with a tree, as ``accept(_:over:of:from:)`` does.
    ///
    /// `tree`: the document's tree; nil if the document is not here. `remote`: nil for a peer without marks.
    /// - Throws: ``VersionError`` if a time is refused.
    func accept(
        _ vectors: [RevisionID: VersionVector],
        over tree: RevisionTree?,
        of id: String,
        from remote: Int?
    ) throws {
        // Most documents have none.
        if vectors.isEmpty { return }
        let peer = remote.map(String.init) ?? ""
        for vector in vectors.values { try accept(vector, over: tree?.vectors.values, of: id, from: peer) }
    }

    /// Verifies the vectors that came with a revision.
    ///
    /// - Throws: ``VersionError`` if a time is refused.
    func accept(of incoming: IncomingRecord, over tree: RevisionTree?) throws {
        // Most revisions come without any.
        guard let vectors = incoming.knowledge?.vectors, !vectors.isEmpty else { return }
        if incoming.isExported { return try acceptExported(vectors, over: tree, of: incoming.documentID) }
        try accept(vectors, over: tree, of: incoming.documentID, from: incoming.remote)
    }

    /// Does the same for the vectors of an export. It is the user's own data: whatever the device's clock says, it is not refused.
    func acceptExported(
        _ vectors: [RevisionID: VersionVector],
        over tree: RevisionTree?,
        of id: String
    ) throws {
        // Most databases make no versions.
        if catalog.versions == nil { return }
        for vector in vectors.values {
            try renewSource(ifUnknown: vector, over: tree?.vectors.values, of: id, from: Self.exports)
            // If the clock is wrong, edits are earlier than these versions until it is set, and include them all the same.
            transaction.replaceCatalog { try? $0.versions?.author.see(vector, wall: transaction.wall) }
        }
    }

    /// Stands for a peer. No peer has this name.
    private static let exports = "exports"

    private func renewSource(
        ifUnknown vector: VersionVector,
        over known: (some Sequence<VersionVector>)?,
        of id: String,
        from peer: String
    ) throws {
        // A vector by others tells nothing.
        guard var versions = catalog.versions, let time = vector.time(of: versions.author.source) else {
            return
        }
        let source = versions.author.source
        let isIncluded = known?.contains { $0.time(of: source) ?? 0 >= time } ?? true
        if isIncluded, versions.mayHaveMade(time) { return }
        // The peer has had its new source.
        guard versions.admitsDemand(of: peer) else { return }
        transaction.replaceCatalog { $0.versions = versions }
        try renewSource(.unknownVersion(try Version(time: time, source: source), document: id))
    }

    private func renewSource(_ reason: NewSourceReason) throws {
        let source = try SourceID.new(transaction.options)
        try transaction.replaceCatalog { $0.versions = try $0.versions?.renamed(source) }
        try catalog.versions?.save(in: database)
        transaction.newSourceReasons.append(reason)
    }

    /// Reads source and clock from the file again.
    func reload() throws {
        let versions = try StoreVersions.load(database)
        transaction.replaceCatalog { $0.versions = versions }
    }

    /// Saves the clock if this transaction has gone beyond its limit, as one that was shown a time ahead of the system's clock does.
    func saveClock() throws {
        // Most transactions stay below it.
        guard var versions = catalog.versions, versions.author.clock.last > versions.limit else { return }
        versions.limit = ClockReserve.limit(after: versions.author.clock.last, wall: 0)
        try versions.save(in: database)
        transaction.replaceCatalog { $0.versions = versions }
    }

    /// Notes that a vector is stored, which earlier versions of Loveseat cannot read. From now on this database makes versions: an edit without one has
    /// no time, and would lose every conflict with one of a peer with versions.
    func noteVectors() throws {
        if catalog.versions == nil { _ = try begin() }
        // They are in the file already, or this transaction has noted it.
        if catalog.storesVectors { return }
        try Schema.noteVectors(in: database)
        transaction.replaceCatalog { $0.storesVectors = true }
    }
}

extension TreeVersions {
    /// The revisions against which an edit of a leaf decides: all other candidates if it is the current one, and if leaves are not kept for peers
    /// of CouchDB's wire. None of them waits for a resolver.
    fileprivate func givenUp(byEditOf leaf: RevisionID) -> [RevisionID] {
        if tree.isLine || tree.keepsBranches || leaf != tree.current?.id { return [] }
        let winner = tree.original(leaf)
        return tree.candidates.filter { $0.original != winner }.map(\.node.id)
    }

    /// The vector on which an edit of a leaf is made that gives up other revisions. Those that never had a version are not part of it.
    fileprivate func vectorToEdit(_ leaf: RevisionID, givingUp others: [RevisionID]) -> VersionVector {
        others.reduce(vectorToEdit(leaf)) { vector, other in
            let lost = state(of: other).vector
            return lost.isEmpty ? vector : vector.united(with: lost)
        }
    }
}

/// The vectors of revisions that a verdict makes.
private final class VerdictVectors { var made: [RevisionID: VersionVector] = [:] }
