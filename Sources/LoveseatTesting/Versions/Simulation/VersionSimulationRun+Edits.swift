import LoveseatAssertions
import LoveseatBLIP
import LoveseatModel
import LoveseatStorage

/// The edits of a history's users.
extension VersionSimulationRun {
    var documentCount: Int { 6 }
    /// The kind of an edit that saves a document.
    static let saving = 39

    func edit() {
        let party = dice.int(0...mesh.count - 1)
        let id = "doc\(dice.int(0...documentCount - 1))"
        let kind = dice.int(0...39)
        trace("\(party) edits \(id): \(kind)")
        if let lite = mesh.lite(party) {
            edit(id, at: lite, kind)
        } else if let gateway = mesh.gateway, party == gateway.index {
            edit(id, at: gateway, kind)
        } else {
            edit(id, at: peers[party], kind)
        }
        noteChanges()
    }

    func edit(_ id: String, at peer: SimulatedPeer, _ kind: Int) {
        let before = peer.tree(id, in: 0)
        let base = before?.current.map { name(of: $0.id, in: before) } ?? nil
        do {
            switch kind {
            case 0 where purges && !peer.isHub:
                if try peer.store.write({ try $0.purge(id, in: peer.collections[0]) }) { oracle.purge(id) }
                return
            case 1...8:
                if before?.current?.isDeleted != false { return }
                _ = try peer.edit(id, in: 0, .emptyObject, isDeleted: true)
            default:
                var body = randomBody(by: peer.index)
                if let (reference, content) = blobs?.draw() {
                    try peer.addBlobs([reference.digest: content])
                    body["blob"] = reference.json
                }
                _ = try peer.edit(id, in: 0, JSONText(canonical: .object(body)))
            }
        } catch { return add("an edit of \(id) at \(peer.index) failed: \(error)") }
        // The edit made nothing: a deletion of a deleted document, for example.
        guard let tree = peer.tree(id, in: 0), let current = tree.current, let body = current.body,
            current.id != before?.current?.id, let name = name(of: current.id, in: tree)
        else { return }
        oracle.edited(
            peer.index,
            id,
            name,
            isDeleted: current.isDeleted,
            JSONElement(body).value,
            on: base
        )
    }

    private func name(of id: RevisionID, in tree: RevisionTree?) -> RevisionName? {
        guard let tree else { return nil }
        let original = tree.original(id)
        return tree.versions.state(of: tree.contains(original) ? original : id).name
    }

    /// An administrator of the gateway writes over REST.
    private func edit(_ id: String, at gateway: VersionMesh.Gateway, _ kind: Int) {
        let before = gateway.document(id)
        let isDeletion = (1...8).contains(kind)
        if isDeletion, before?.isDeleted != false { return }
        let base = before.flatMap { RevisionID($0.current) }.map { nameAnywhere(of: $0, id) }
        let body = isDeletion ? nil : randomBody(by: gateway.index)
        do throws(ReplyError) {
            let made = try gateway.traffic.edit(id, body)
            gateway.traffic.scheduleWork()
            guard let made = made.flatMap({ RevisionID($0) }) else {
                return impossible("the gateway's edit of \(id) has no name")
            }
            oracle.edited(
                gateway.index,
                id,
                .revision(made),
                isDeleted: isDeletion,
                .object(body ?? [:]),
                on: base
            )
        } catch { add("an edit of \(id) at the gateway failed: \(error)") }
    }

    /// The name of the state that a revision of a hub stands for, according to the Loveseats that know it. Nothing is superseded by an
    /// edit of a state that none of them knows.
    private func nameAnywhere(of revision: RevisionID, _ id: String) -> RevisionName {
        let trees = mesh.loveseats.compactMap { $0.tree(id, in: 0) }.filter { $0.contains(revision) }
        let tree = trees.first { $0.contains($0.original(revision)) } ?? trees.first
        return name(of: revision, in: tree) ?? .revision(revision)
    }

    func edit(_ id: String, at lite: LitePeer, _ kind: Int) {
        let before = lite.database.documents()[id]?.current
        do throws(LiteWriteError) {
            let made: LiteRevision
            switch kind {
            case 0 where purges:
                lite.database.purge(id)
                oracle.purge(id)
                return
            case 1...8:
                if before?.isDeleted != false { return }
                made = try lite.database.delete(id)
            default:
                var body = randomBody(by: lite.index)
                if let (reference, content) = blobs?.draw() {
                    lite.database.blobs[reference.digest.text] = content
                    body["blob"] = reference.json
                }
                made = try lite.database.edit(id, body)
            }
            // Every state that was made has a name.
            guard let name = made.name else { return impossible("an edit of \(id) has no name") }
            oracle.edited(
                lite.index,
                id,
                name,
                isDeleted: made.isDeleted,
                .object(made.body ?? [:]),
                on: before?.name
            )
        } catch {
            trace("\(lite.index) cannot edit \(id): \(error.code)")
        }
    }

    private func randomBody(by party: Int) -> JSONObject {
        if simulation.repeatsContents {
            let number = dice.int(0...2)
            var body: JSONObject = ["n": JSONValue(number)]
            if number == 1 { body["text"] = .string(String(repeating: "all work and no play ", count: 20)) }
            return body
        }
        var body: JSONObject = ["n": JSONValue(dice.int(0...1_000_000)), "by": JSONValue(party)]
        if dice.chance(0.3) {
            // Long enough for deltas, and much the same every time.
            body["log"] = .array((0..<dice.int(5...12)).map { JSONValue($0 * 1_000_003) })
            body["text"] = .string(
                String(repeating: "all work and no play ", count: 20) + String(dice.int(0...99))
            )
        }
        return body
    }
}
