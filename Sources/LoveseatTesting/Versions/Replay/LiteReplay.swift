import LoveseatBLIP
import LoveseatModel

/// Drives ``LiteDatabase``s through a recorded story, and compares what they say and what they have with what the real peers said and had.
///
/// Compared are the sub-protocols, every message (flags, properties with their order, body as JSON of the same length), every document after every
/// step, with what is known of remotes, and the errors of documents.
/// Masked are the order of messages, the order of members in bodies, the number of empty lists on continuous connections, and
/// how far a checkpoint had come when it was saved: only the last one of a connection has to be the model's last one, the others some earlier one.
/// The times of new versions are the recorded ones.
package struct LiteReplay {
    let recording: LiteRecording
    var databases: [String: LiteDatabase] = [:]
    /// The differences, in words.
    package private(set) var problems: [String] = []
    /// The step that is played.
    private var context = ""
    /// The peers whose databases were removed and made anew.
    private var madeAnew: Set<String> = []

    package init(_ recording: LiteRecording) { self.recording = recording }

    /// Plays a recording, and returns what differs.
    package static func differences(in recording: LiteRecording) -> [String] {
        var replay = LiteReplay(recording)
        replay.play()
        return replay.problems
    }

    mutating func note(_ problem: String) { problems.append("\(context): \(problem)") }

    /// The steps.
    var steps: [JSONValue] { recording.expected["steps"]?.array ?? [] }

    private mutating func play() {
        for (index, step) in steps.enumerated() {
            context = step["connection"].map { "connection \($0)" } ?? "step \(index)"
            perform(step, at: index)
        }
    }

    mutating func perform(_ step: JSONValue, at index: Int) {
        let peer = step["at"]?.string ?? ""
        if let connection = step["connection"]?.int {
            play(connection, step)
        } else if let operations = step["local"]?.array {
            perform(operations.compactMap(\.string), at: peer, step["state"]?.array ?? [])
            compare(step["state"], peer)
        } else if step["trees"] != nil || step["upgraded"] != nil {
            importTrees(step["state"]?.array ?? [], at: peer, isUpgraded: step["upgraded"] != nil, index)
        } else if let states = step["states"]?.object {
            for (peer, state) in states { importTrees(state.array ?? [], at: peer, isUpgraded: false, index) }
        } else if let original = step["copy of"]?.string {
            databases[peer] = LiteDatabase(copying: database(original))
        } else if step["database"] != nil {
            databases[peer] = nil
            madeAnew.insert(peer)
        } else {
            note("an unknown step: \(step)")
        }
    }

    /// The database of a peer. It is made when it is first needed.
    mutating func database(_ peer: String) -> LiteDatabase {
        if let known = databases[peer] { return known }
        var source = recording.source(of: peer)
        if !madeAnew.contains(peer),
            steps.contains(where: { $0["at"]?.string == peer && $0["database"] != nil })
        {
            // The name of the first one shows in its versions.
            let first = steps.first { $0["at"]?.string == peer && $0["state"] != nil }
            source = first?["state"]?[0]?["version"]?.string.flatMap { try? Version($0) }?.source
        }
        if source == nil { note("the source of \(peer) is not valid") }
        let isActive = !steps.contains { $0["passive"]?.string == peer }
        let database = LiteDatabase(
            source ?? SourceID(high: 0, low: 1),
            recording.release(isActive: isActive),
            wall: { 0 }
        )
        databases[peer] = database
        return database
    }

    // MARK: Edits

    private mutating func perform(_ texts: [String], at peer: String, _ state: [JSONValue]) {
        let database = database(peer)
        database.blobs.merge(recording.blobs()) { own, _ in own }
        let operations = LiteOperation.parse(texts, state) { id, collection in
            database.documents(in: collection)[id]?.current.body
        }
        for (place, operation) in operations.enumerated() {
            let (id, collection) = (operation.id, operation.collection)
            if database.collections[collection] == nil {
                database.collections[collection] = LiteDatabase.Collection()
            }
            let later = operations[(place + 1)...].count { $0.id == id && $0.collection == collection }
            let time = operation.version(in: state)?.time
            database.chooseTime = { _ in time.map { $0 - UInt64(later) } }
            switch operation.edit {
            case .purge: database.purge(id, in: collection)
            case .put(let body): apply(body, id, collection, database)
            case .delete: apply(nil, id, collection, database)
            case .unknown: note("an unknown operation: \(id)")
            }
        }
        database.chooseTime = { _ in nil }
    }

    mutating func apply(_ body: JSONObject?, _ id: String, _ collection: String, _ database: LiteDatabase) {
        do {
            if let body {
                try database.edit(id, body, in: collection)
            } else {
                try database.delete(id, in: collection)
            }
        } catch { note("\(id) cannot be edited: \(error)") }
    }

    static func object(_ text: String?) -> JSONObject {
        LiteSession.parse(Array((text ?? "{}").utf8))?.object ?? [:]
    }

    // MARK: Trees

    private mutating func importTrees(_ state: [JSONValue], at peer: String, isUpgraded: Bool, _ index: Int) {
        let database = database(peer)
        database.hasTrees = !isUpgraded
        var collection = LiteDatabase.Collection()
        for item in state {
            guard let id = item["id"]?.string,
                let revision = item["revision"]?.string.flatMap({ RevisionID($0) })
            else { continue }
            let isDeleted = item["deleted"]?.bool ?? false
            let body = item["body"]?.object ?? [:]
            let current = LiteRevision(.legacy(revision), isDeleted: isDeleted, body: body)
            var document = LiteDocument(current, sequence: UInt64(item["sequence"]?.int ?? 0))
            document.isTreeRecord = true
            for (place, text) in (item["remote"]?.array ?? []).enumerated() {
                guard let mark = text.string.flatMap({ RevisionID($0) }) else { continue }
                let number = database.remoteNumber(of: nextAddress(of: peer, after: index) ?? "\(place)")
                let body = steps[...index].compactMap { Self.body(of: mark, id, $0, peer) }.last
                let known = mark == revision ? current : LiteRevision(.legacy(mark), body: body)
                document.remotes[number] = LiteDocument.Remote(revision: known)
            }
            collection.documents[id] = document
            collection.lastSequence = max(collection.lastSequence, document.sequence)
        }
        database.collections["_default"] = collection
    }

    /// The content of an older revision, from the state of an earlier step.
    private static func body(of mark: RevisionID, _ id: String, _ step: JSONValue, _ peer: String)
        -> JSONObject?
    {
        let state = step["states"]?[peer]?.array ?? (step["at"]?.string == peer ? step["state"]?.array : nil)
        let item = state?.first { $0["id"]?.string == id && $0["revision"]?.string == mark.text }
        return item?["body"]?.object
    }

    /// The address of the other database in the next connection of an active peer.
    private func nextAddress(of peer: String, after index: Int) -> String? {
        let step = steps[index...].first { $0["connection"] != nil && $0["active"]?.string == peer }
        return step?["connection"]?.int.flatMap { address(inConnection: $0) }
    }

    /// A peer's address shows in the checkpoint's ID.
    func address(inConnection connection: Int) -> String? {
        let request = recording.messages(connection).first { $0.message.profile == "getCollections" }
        return LiteSession.parse(request?.message.body ?? [])?["checkpoint_ids"]?[0]?.string
    }
}
