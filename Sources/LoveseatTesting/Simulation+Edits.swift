import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// The edits of the peers' users.
extension SimulationRun {
    func edit() {
        let peer = generator.pick(
            guests.isEmpty && !worlds.contains(.couch)
                ? peers : peers.filter { !isGuest($0) && $0.foreign == nil }
        )
        let collection = generator.int(0...peer.collections.count - 1)
        let id = "doc\(generator.int(0...generator.pick([3, 12, 40])))"
        let key = "\(collection)/\(id)"
        let kind = generator.int(0...19)
        trace("\(peer.index) edit \(kind) \(key)")
        let base = peer.tree(id, in: collection)?.current?.id
        defer {
            if let tree = peer.tree(id, in: collection) { oracle.edited(peer.index, key, tree, base: base) }
        }
        do {
            switch kind {
            case 0 where !neverPurges:
                if try peer.store.write({ try $0.purge(id, in: peer.collections[collection]) }) {
                    hasPurged = true
                    purgedKeys.insert(key)
                    oracle.purged(peer.index, key)
                    soleEditors[key] = .some(nil)
                }
            case 1...3:
                if try peer.edit(id, in: collection, .emptyObject, isDeleted: true) {
                    noteEdit(key, peer, nil)
                }
            case 4:
                let resolution = ManualMerge(peer: peer, collection: collection, documentID: id)
                if try resolution.merge() { soleEditors[key] = .some(nil) }
            default:
                let body = try randomBody(for: peer)
                _ = try peer.edit(id, in: collection, body)
                noteEdit(key, peer, body)
                if worlds.contains(.namesakes) { try editNamesake(of: id, collection, at: peer, body) }
            }
        } catch { report.problems.append("an edit failed: \(error)") }
    }

    func noteEdit(_ key: String, _ peer: SimulatedPeer, _ body: JSONText?) {
        switch soleEditors[key] {
        case nil: soleEditors[key] = (peer.index, body)
        case .some(.some(let entry)) where entry.peer == peer.index: soleEditors[key] = (peer.index, body)
        default: soleEditors[key] = .some(nil)
        }
    }

    private func randomBody(for peer: SimulatedPeer) throws -> JSONText {
        if simulation.repeatsContents { return try repeatedBody(for: peer) }
        var value: JSONValue = ["n": JSONValue(generator.int(0...1_000_000)), "by": JSONValue(peer.index)]
        if generator.chance(0.3) {
            // Long enough for deltas, and much the same every time.
            value["log"] = .array((0..<generator.int(5...12)).map { JSONValue($0 * 1_000_003) })
            value["text"] = .string(
                String(repeating: "all work and no play ", count: 5) + String(generator.int(0...99))
            )
        }
        if generator.chance(0.1) {
            value["long"] = .string(String(repeating: "lorem ipsum ", count: generator.int(1...4_000)))
        }
        if generator.chance(0.15) {
            let content = generator.bytes(generator.pick([0, 10, 5_000, 200_000]))
            let type = generator.pick(["text/plain", "image/jpeg"])
            value["blob"] = try blob(content, at: peer, type: type).json
        }
        try shareBlobs(at: peer, &value)
        return JSONText(canonical: value)
    }

    /// One of three contents: a short one, one that is long enough for deltas, and one with a blob.
    private func repeatedBody(for peer: SimulatedPeer) throws -> JSONText {
        let number = generator.int(0...2)
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
        blobContents[digest] = content
        return BlobReference(digest: digest, length: length, contentType: type)
    }
}
