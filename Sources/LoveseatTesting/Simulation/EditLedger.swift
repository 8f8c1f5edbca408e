import LoveseatModel

/// The documents that the people of a history wrote and gave up, as far as the checks at its end need them.
final class EditLedger {
    let oracle = EditOracle()
    /// The only editor of each document, and what it wrote last; nil once there were several, or a purge.
    private(set) var soleEditors: [String: (peer: Int, body: JSONText?)?] = [:]
    /// Documents made in collections that were made anew.
    var freshDocuments: [String: (peer: Int, body: JSONText)] = [:]
    /// The documents that somebody once had and gave up.
    private(set) var purgedKeys: Set<String> = []
    var hasPurged = false
    var blobContents: [BlobDigest: [UInt8]] = [:]

    /// `body`: nil if the peer deleted the document.
    func noteEdit(_ key: String, _ peer: SimulatedPeer, _ body: JSONText?) {
        switch soleEditors[key] {
        case nil: soleEditors[key] = (peer.index, body)
        case .some(.some(let entry)) where entry.peer == peer.index: soleEditors[key] = (peer.index, body)
        default: forgetEditor(of: key)
        }
    }

    /// No single peer decides over a document any more.
    func forgetEditor(of key: String) { soleEditors[key] = .some(nil) }

    /// A document is made that nobody else writes.
    func noteFresh(_ key: String, _ peer: SimulatedPeer, _ body: JSONText) {
        (freshDocuments[key], soleEditors[key]) = ((peer.index, body), (peer.index, body))
    }

    /// A peer purges a document.
    func noteRemoval(_ key: String, at peer: SimulatedPeer) {
        hasPurged = true
        purgedKeys.insert(key)
        oracle.purged(peer.index, key)
        forgetEditor(of: key)
        freshDocuments[key] = nil
    }

    /// Runs something that may take commits from a peer. Nobody knows what becomes of the documents that it then has in another version.
    func losingEdits(of peer: SimulatedPeer, _ act: () -> Void) {
        let before = soleRevisions(of: peer)
        act()
        let after = soleRevisions(of: peer)
        // A second deletion of a deleted document is lost too, although nothing looks different.
        for (key, revision) in before where after[key] != revision {
            forgetEditor(of: key)
            freshDocuments[key] = nil
        }
    }

    /// The current revisions, at a peer, of the documents that nobody else edited.
    private func soleRevisions(of peer: SimulatedPeer) -> [String: RevisionID?] {
        var revisions: [String: RevisionID?] = [:]
        for (key, editor) in soleEditors where editor?.peer == peer.index {
            guard let collection = Int(key.prefix(1)) else { continue }
            let current = peer.tree(String(key.dropFirst(2)), in: collection)?.current
            revisions.updateValue(current?.id, forKey: key)
        }
        return revisions
    }
}
