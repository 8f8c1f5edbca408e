import LoveseatModel
import LoveseatStorage

/// The edits of the peers' users.
struct UserEdits: HistoryPart {
    unowned let run: SimulationRun

    func edit() {
        let peer = dice.history.pick(
            mesh.guests.isEmpty && !worlds.contains(.couch)
                ? peers : peers.filter { !mesh.isGuest($0) && $0.foreign == nil }
        )
        let collection = dice.history.int(0...peer.collections.count - 1)
        let id = "doc\(dice.history.int(0...dice.history.pick([3, 12, 40])))"
        let key = "\(collection)/\(id)"
        let kind = dice.history.int(0...19)
        trace("\(peer.index) edit \(kind) \(key)")
        let base = peer.tree(id, in: collection)?.current?.id
        defer {
            if let tree = peer.tree(id, in: collection) { oracle.edited(peer.index, key, tree, base: base) }
        }
        do {
            switch kind {
            case 0 where !run.neverPurges:
                if try peer.store.write({ try $0.purge(id, in: peer.collections[collection]) }) {
                    ledger.noteRemoval(key, at: peer)
                }
            case 1...3:
                if try peer.edit(id, in: collection, .emptyObject, isDeleted: true) {
                    ledger.noteEdit(key, peer, nil)
                }
            case 4:
                let resolution = ManualMerge(peer: peer, collection: collection, documentID: id)
                if try resolution.merge() { ledger.forgetEditor(of: key) }
            default:
                let body = try randomBody(for: peer)
                _ = try peer.edit(id, in: collection, body)
                ledger.noteEdit(key, peer, body)
                if worlds.contains(.namesakes) { try editNamesake(of: id, collection, at: peer, body) }
            }
        } catch { journal.add("edit \(kind) of \(key) at peer \(peer.index) failed: \(error)") }
    }

    private func randomBody(for peer: SimulatedPeer) throws -> JSONText {
        if simulation.repeatsContents { return try repeatedBody(for: peer) }
        var value: JSONValue = ["n": JSONValue(dice.history.int(0...1_000_000)), "by": JSONValue(peer.index)]
        if dice.history.chance(0.3) {
            // Long enough for deltas, and much the same every time.
            value["log"] = .array((0..<dice.history.int(5...12)).map { JSONValue($0 * 1_000_003) })
            value["text"] = .string(
                String(repeating: "all work and no play ", count: 5) + String(dice.history.int(0...99))
            )
        }
        if dice.history.chance(0.1) {
            value["long"] = .string(String(repeating: "lorem ipsum ", count: dice.history.int(1...4_000)))
        }
        if dice.history.chance(0.15) {
            let content = dice.history.bytes(dice.history.pick([0, 10, 5_000, 200_000]))
            let type = dice.history.pick(["text/plain", "image/jpeg"])
            value["blob"] = try blob(content, at: peer, type: type).json
        }
        try shareBlobs(at: peer, &value)
        return JSONText(canonical: value)
    }

    /// One of three contents: a short one, one that is long enough for deltas, and one with a blob.
    private func repeatedBody(for peer: SimulatedPeer) throws -> JSONText {
        let number = dice.history.int(0...2)
        var value: JSONValue = ["n": JSONValue(number)]
        if number == 1 { value["text"] = .string(String(repeating: "all work and no play ", count: 10)) }
        if number == 2 { value["blob"] = try blob([UInt8](repeating: 7, count: 5_000), at: peer).json }
        try shareBlobs(at: peer, &value)
        return JSONText(canonical: value)
    }

    func blob(_ content: [UInt8], at peer: SimulatedPeer, type: String = "text/plain") throws
        -> BlobReference
    {
        let writer = try peer.store.blobs.writer()
        try writer.write(content)
        let (digest, length) = try writer.finish()
        ledger.blobContents[digest] = content
        return BlobReference(digest: digest, length: length, contentType: type)
    }

    // MARK: For the untidy worlds

    func pickPlace(at peer: SimulatedPeer) -> (collection: Int, id: String, key: String) {
        let collection = dice.untidy.int(0...peer.collections.count - 1)
        let id = "doc\(dice.untidy.int(0...dice.untidy.pick([3, 12, 40])))"
        return (collection, id, "\(collection)/\(id)")
    }

    @discardableResult
    func save(_ id: String, _ collection: Int, at peer: SimulatedPeer, _ body: JSONText) throws -> Bool {
        let base = peer.tree(id, in: collection)?.current?.id
        let made = try peer.edit(id, in: collection, body)
        if let tree = peer.tree(id, in: collection) {
            oracle.edited(peer.index, "\(collection)/\(id)", tree, base: base)
        }
        return made
    }

    /// The same document in the other collection.
    func editNamesake(of id: String, _ collection: Int, at peer: SimulatedPeer, _ body: JSONText) throws {
        if !dice.untidy.chance(0.5) { return }
        let other = (collection + 1) % peer.collections.count
        trace("\(peer.index) edits \(id) in \(other), too")
        try save(id, other, at: peer, body)
        ledger.noteEdit("\(other)/\(id)", peer, body)
    }

    /// Attaches one or two of five contents, of which the first is empty; or one of its own, where databases are compacted.
    func shareBlobs(at peer: SimulatedPeer, _ value: inout JSONValue) throws {
        if worlds.contains(.compactions), dice.untidy.chance(0.4) {
            let content = dice.untidy.bytes(dice.untidy.pick([10, 3_000, 60_000]))
            value["own"] = try blob(content, at: peer).json
        }
        if !worlds.contains(.sharedBlobs) || !dice.untidy.chance(0.6) { return }
        for name in ["one", "two"] where dice.untidy.chance(0.7) {
            let number = dice.untidy.int(0...4)
            let content = [UInt8](repeating: UInt8(number), count: [0, 30, 4_000, 70_000, 150_000][number])
            let type = dice.untidy.pick(["text/plain", "image/jpeg"])
            value[name] = try blob(content, at: peer, type: type).json
        }
    }
}
