import GRDB
import LoveseatModel

/// The rows of documents: the current revision of each, and its tree.
struct DocumentTable: WrittenTable {
    let transaction: StoreWriteTransaction

    /// Inserts a row; nil if the document exists already.
    func insertRow(
        _ id: String,
        in collection: CollectionHandle,
        revision: RevisionID,
        flags: RowFlags,
        synced: Int,
        tree: [UInt8]?,
        body: JSONText
    ) throws -> UInt64? {
        let last = catalog.lastSequence[collection.number]
        let sequence = try transaction.nextSequence(collection)
        let statement = try RawStatement(collection.statements.insert, in: database)
        statement.bind(1, id)
        statement.bind(2, Int64(clamping: sequence))
        statement.bind(3, revision.text)
        statement.bind(4, flags.rawValue)
        statement.bind(5, Int64(synced))
        statement.bind(6, blob: tree)
        statement.bindText(7, body.bytes)
        guard try statement.run() > 0 else {
            transaction.replaceCatalog { $0.lastSequence[collection.number] = last }
            return nil
        }
        if flags.contains(.deleted) { transaction.withTombstones.insert(collection.number) }
        if flags.contains(.hasConflicts) { transaction.noteRarity(.conflict, in: collection) }
        transaction.recordChange(of: id, in: collection)
        return sequence
    }

    @discardableResult
    func store(
        _ tree: RevisionTree,
        current: RevisionTree.Node? = nil,
        over record: DocumentRecord?,
        id: String? = nil,
        in collection: CollectionHandle
    ) throws -> UInt64 {
        guard let record else {
            guard let id, let current = current ?? tree.current else {
                throw LoveseatError(.assertionFailed, "an empty tree")
            }
            if !tree.vectors.isEmpty { try transaction.versionTable.noteVectors() }
            let parts = try RowParts(tree, current: current, over: nil)
            let sequence = try insertRow(
                id,
                in: collection,
                revision: current.id,
                flags: parts.flags,
                synced: parts.synced,
                tree: parts.tree,
                body: parts.body
            )
            guard let sequence else {
                throw LoveseatError(.assertionFailed, "a row appeared inside a transaction")
            }
            try transaction.ancestorTable.keep(of: tree, id, current: current.id, in: collection)
            return sequence
        }
        let sequence = try transaction.nextSequence(collection)
        try write(tree, current: current, over: record, in: collection, sequence: sequence)
        transaction.recordChange(of: record.id, in: collection)
        return sequence
    }

    /// Replaces a row.
    ///
    /// `current`: the tree's current revision, if that is known already. `digest`: the digest of the knowledge, if that is
    /// unchanged; nil to compute it.
    func write(
        _ tree: RevisionTree,
        current known: RevisionTree.Node? = nil,
        over record: DocumentRecord,
        in collection: CollectionHandle,
        sequence: UInt64,
        digest: [UInt8]? = nil
    ) throws {
        guard let current = known ?? tree.current else {
            throw LoveseatError(.assertionFailed, "an empty tree")
        }
        if sequence == record.sequence {
            try transaction.markTable.withdraw(of: record, unlessIn: tree, collection)
        }
        if !tree.vectors.isEmpty { try transaction.versionTable.noteVectors() }
        let parts = try RowParts(tree, current: current, over: record, digest: digest)
        let statement = try RawStatement(collection.statements.update, in: database)
        statement.bind(1, record.row)
        statement.bind(2, Int64(clamping: sequence))
        statement.bind(3, current.id.text)
        statement.bind(4, parts.flags.rawValue)
        statement.bind(5, Int64(parts.synced))
        statement.bind(6, blob: parts.tree)
        statement.bindText(7, parts.body.bytes)
        try statement.run()
        try transaction.ancestorTable.keep(of: tree, record.id, current: current.id, in: collection)
        try transaction.replacedTable.keep(of: record, by: tree, in: collection)
        if parts.flags.contains(.hasConflicts) { transaction.noteRarity(.conflict, in: collection) }
        if parts.flags.contains(.deleted), sequence != record.sequence {
            transaction.withTombstones.insert(collection.number)
        }
    }

    /// Stores a changed tree. It gets a new sequence if another revision became current, if there is more knowledge than before, which
    /// other databases have to get, or if the current revision has to be offered to the remote again.
    ///
    /// `current`: the tree's current revision, if that is known already. `isMended`: whether damaged content was replaced.
    func replace(
        _ before: RevisionTree,
        with tree: inout RevisionTree,
        current known: RevisionTree.Node? = nil,
        over record: DocumentRecord?,
        id: String,
        in collection: CollectionHandle,
        isMended: Bool = false
    ) throws {
        if tree == before { return }
        let current = known ?? tree.current
        verifyNewBodies(&tree, besides: current, since: before)
        guard let record else {
            try store(tree, current: current, over: nil, id: id, in: collection)
            return
        }
        // A remote that had the current revision, and has something older now, is offered it again.
        let isContradicted = tree.remotes.contains { remote, mark in
            guard before.remotes[remote] != mark else { return false }
            return tree.isContradicted(by: remote)
                || (before.agreesInContent(with: remote) && !tree.hasCurrent(remote))
        }
        let isSettled = record.hasConflicts && tree.pending.isEmpty
        let isChanged = current?.id != record.revision || isMended || isSettled
        // Peers of CouchDB's wire are shown a leaf when its content is here.
        if isChanged || isContradicted || tree.hasMoreKnowledge(than: before) || tree.rule.completes(before) {
            try store(tree, current: current, over: record, in: collection)
        } else {
            try write(tree, current: current, over: record, in: collection, sequence: record.sequence)
        }
    }

    /// Records which arrived bodies, other than the current one, are those from which their revisions were made.
    func verifyNewBodies(
        _ tree: inout RevisionTree,
        besides current: RevisionTree.Node?,
        since before: RevisionTree
    ) {
        if tree.isLine { return }
        let verified = tree.nodes.values.filter { node in
            guard let body = node.body, node.id != current?.id,
                before.isEmpty || before.node(node.id)?.body == nil
            else { return false }
            return BodyDigest.matches(node.id, parent: node.parent, isDeleted: node.isDeleted, body: body)
        }.map { $0.id }
        for id in verified { tree.noteVerified(id) }
    }
}

/// The columns of a tree's row.
private struct RowParts {
    let flags: RowFlags
    let synced: Int
    let tree: [UInt8]?
    let body: JSONText

    init(
        _ tree: RevisionTree,
        current: RevisionTree.Node,
        over record: DocumentRecord?,
        digest: [UInt8]? = nil
    ) throws {
        guard let body = current.body else {
            throw LoveseatError(.assertionFailed, "a current revision without a body")
        }
        var flags = RowFlags(rawValue: Int64(current.flags.subtracting([.joint, .yielded]).rawValue))
        if !tree.pending.isEmpty { flags.insert(.hasConflicts) }
        if tree.isTold { flags.insert(.branched) }
        if !tree.putAside.isEmpty || record?.flags.contains(.hasAncestors) == true {
            flags.insert(.hasAncestors)
        }
        // A body that was stored before is not verified again, which would hide damage.
        let verified =
            record?.revision == current.id || flags.contains(.verified)
            ? flags.intersection(.verified)
            : BodyDigest.flags(
                of: current.id,
                parent: current.parent,
                isDeleted: current.isDeleted,
                body: body
            )
        flags.formUnion(verified)
        // The lowest remote that has the current revision is in the row, so that a plain document needs no tree.
        synced = tree.remotes.filter { $0.value == current.id }.keys.min() ?? 0
        var rest = tree
        if synced != 0 { rest.forgetRemote(synced) }
        self.tree = DocumentRecord.encode(
            rest,
            current: current,
            isTold: flags.contains(.branched),
            digest: digest
        )
        self.flags = flags
        self.body = body
    }
}
