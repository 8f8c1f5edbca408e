import LoveseatBLIP
import LoveseatModel
import LoveseatStorage

/// Finds the deletion behind a tombstone.
extension GatewaySimulationRun {
    /// Whether a deletion stands behind a tombstone that a client pushed: no replicator writes one without.
    ///
    /// The deletion is one by the client's app, or one that the gateway itself had: of the very document on which the tombstone is put, or
    /// of a document for which somebody gave up the other one there. A person who saves a document decides against every other version of
    /// it that has come, and the saved one may turn out to be deleted. A client that edited a document which another one deleted may send
    /// its edit before it hears of the deletion; the deletion stands all the same (docs/decisions/0001). A client that gave way each time
    /// the deletion came back follows somebody else's decision.
    func isDecided(_ pushed: GatewayLine.Pushed, by client: GatewayClient) -> Bool {
        guard !client.deleted.contains(pushed.id), !audit.hasHad(pushed.revision, of: pushed.id),
            let tombstone = RevisionID(pushed.revision)
        else { return true }
        let tree = client.peer.tree(pushed.id, in: 0)
        let keyspace = twin.databases[Self.database]?.keyspaces[GatewayDatabase.keyspace(path)]
        let document = keyspace?.documents[pushed.id]
        let replaced = document?.revisions[pushed.revision]?.parent.flatMap { RevisionID($0) }
        let named = self.original(tombstone, of: document)
        let original = tree?.known(tombstone) ?? named
        if client.tombstones.contains(tombstone) || client.tombstones.contains(original) { return true }
        guard let replaced, audit.hasHad(original, of: pushed.id) else { return false }
        guard let tree else {
            // The document was taken away while its deletion was in flight. The names of the revisions tell what somebody gave up.
            return isGivenUp(self.original(replaced, of: document), of: pushed.id, by: [client])
        }
        guard let copied = tree.copy(of: original) ?? (tree.contains(original) ? original : nil) else {
            return false
        }
        let decided = tree.original(replaced)
        return tree.origin(of: replaced) == tree.origin(of: copied) || tree.superseded.contains(decided)
            || client.givenUp[pushed.id]?.contains(decided) == true
            || (tree.closed.contains(decided) && isGivenUp(decided, of: pushed.id, by: clients))
    }

    /// The original of a revision that the gateway has, abbreviated if it is a copy. Any digest may look like a copy's name; its check tells.
    private func original(_ id: RevisionID, of document: GatewayDocument?) -> RevisionID {
        guard let document, let parent = document.revisions[id.text]?.parent.flatMap({ RevisionID($0) }),
            CopyName.isCopy(id, over: parent, of: document.id, sha1: Hashing.sha1)
        else { return id }
        return CopyName(id)?.original ?? id
    }

    /// Whether somebody at one of these clients saved the document over a version, which may be abbreviated.
    private func isGivenUp(_ original: RevisionID, of id: String, by clients: [GatewayClient]) -> Bool {
        let name = CopyName(original: original, origin: original)
        return clients.contains { $0.givenUp[id]?.contains { name.isOf($0) } == true }
    }
}
