private import Foundation
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// A recorded story of peers of Couchbase Lite 4 with a Loveseat in the place of one of them, and the proved model in the place of the others.
///
/// Everybody edits as recorded, at the recorded times, and connects as recorded. Messages are not compared, since ours may say more; what
/// everybody has at the end is.
///
/// @unchecked because everything of it runs on the thread that plays it.
package final class OwnStory: @unchecked Sendable {
    let recording: LiteRecording
    let ownName: String
    var replay: LiteReplay
    let clock = VirtualClock()
    let runtime: SimulatedRuntime
    private(set) var own: SimulatedPeer
    private var lites: [String: LitePeer] = [:]
    /// The differences, in words.
    var problems: [String] = []
    /// The documents of which the peers of the last connection, if it goes both ways, have different contents.
    private var disagreements: [String] = []
    /// Called with every message and every step, for people; nil where nobody reads them.
    let detail: ((String) -> Void)?
    /// The time of the story, in nanoseconds since 1970, without the errors of clocks.
    private var time: UInt64 = 0
    private let folder = FileManager.default.temporaryDirectory
        .appending(path: "loveseat-story-\(UUID().uuidString)").path

    private init(_ recording: LiteRecording, own name: String, _ detail: ((String) -> Void)?) throws {
        (self.recording, self.detail, ownName) = (recording, detail, name)
        replay = LiteReplay(recording)
        runtime = SimulatedRuntime(clock, seed: 1)
        own = try Self.makePeer(recording, name, "\(folder)/own", clock)
        time = replay.steps.map(timeOfVersions).filter { $0 > 0 }.min() ?? 1_795_740_000_000_000_000
    }

    // The story may have failed before it created the folder.
    deinit { try? FileManager.default.removeItem(atPath: folder) }

    /// The peers of a story whose place a Loveseat can take: those whose files were not copied, and that speak versions.
    package static func peers(in recording: LiteRecording) -> [String] {
        let steps = recording.expected["steps"]?.array ?? []
        let copied = steps.flatMap { step in
            step["copy of"].map { [$0.string, step["at"]?.string].compactMap { $0 } } ?? []
        }
        let isRefused = recording.connections.indices.contains {
            recording.protocols($0 + 1, isActive: false) == nil
        }
        if isRefused { return [] }
        let connected = steps.flatMap { step in ["active", "passive"].compactMap { step[$0]?.string } }
        return Set(connected).subtracting(copied).sorted()
    }

    /// How a story ended.
    package struct Outcome: Sendable {
        /// The differences from the recorded end, in words.
        package let differences: [String]
        /// The documents that are different at the two peers of the last connection, if it goes both ways.
        package let disagreements: [String]
    }

    /// Plays a recording to its end.
    ///
    /// - Throws: If the Loveseat's database cannot be made.
    package static func play(
        in recording: LiteRecording,
        own name: String,
        detail: ((String) -> Void)? = nil
    ) throws -> Outcome {
        let story = try OwnStory(recording, own: name, detail)
        try story.play()
        return Outcome(differences: story.problems, disagreements: story.disagreements)
    }

    private static func makePeer(
        _ recording: LiteRecording,
        _ name: String,
        _ folder: String,
        _ clock: VirtualClock
    ) throws -> SimulatedPeer {
        var paths: Set<String> = ["_default"]
        for step in recording.expected["steps"]?.array ?? [] {
            if step["at"]?.string == name, let local = step["local"]?.array?.compactMap(\.string) {
                for (one, other) in zip(local, local.dropFirst()) where one == "--coll" {
                    paths.insert(other)
                }
            }
            for item in step["states"]?[name]?.array ?? [] {
                paths.insert(item["collection"]?.string ?? "_default")
            }
        }
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        return try SimulatedPeer(
            index: 0,
            collections: paths.sorted().compactMap { CollectionName(path: $0) },
            blobFolder: folder,
            seed: 7,
            clock: clock
        )
    }

    private func play() throws {
        for (index, step) in replay.steps.enumerated() {
            advance(to: step)
            detail?("step \(index): \(step["connection"] ?? step["at"] ?? "") \(step["local"] ?? "")")
            try perform(step, index)
            if detail != nil { describe() }
        }
        compare()
    }

    private func perform(_ step: JSONValue, _ index: Int) throws {
        if let number = step["connection"]?.int { return try connect(number, step) }
        guard step["at"]?.string == ownName else {
            if let items = step["states"]?[ownName]?.array { try importTrees(items) }
            return replay.perform(step, at: index)
        }
        let state = step["state"]?.array ?? []
        if let texts = step["local"]?.array?.compactMap(\.string) {
            for operation in LiteOperation.parse(texts, state, body: { self.body($0, in: $1) }) {
                try edit(operation)
            }
        } else if step["database"] != nil {
            own = try Self.makePeer(recording, ownName, "\(folder)/anew-\(index)", clock)
        } else if step["upgraded"] == nil {
            try importTrees(state)
        }
    }

    // MARK: Clocks

    /// When the last version in the states of a step was made; 0 if there are none.
    private func timeOfVersions(in step: JSONValue) -> UInt64 {
        let states = (step["states"]?.object?.map(\.value) ?? []) + [step["state"]].compactMap { $0 }
        return states.flatMap { $0.array ?? [] }.reduce(0) { last, item in
            guard let version = item["version"]?.string.flatMap({ try? Version($0) }),
                let author = recording.expected["sources"]?.object?.first(where: {
                    $0.value.string == version.source.text
                })
            else { return last }
            let ahead = Int64(replay.offset(of: author.key)) * 1_000_000_000
            return max(last, UInt64(clamping: Int64(clamping: version.time) - ahead))
        }
    }

    /// Nothing of a step is older than the versions that were made in it.
    private func advance(to step: JSONValue) {
        time = max(time, timeOfVersions(in: step))
        if step["connection"] != nil { time += 1_000_000 }
        for (name, lite) in lites { lite.wall.offset = offset(of: name) }
        own.setClock(offset(of: ownName))
    }

    /// How far a peer's clock is ahead of the simulation's, in milliseconds.
    private func offset(of peer: String) -> Int64 {
        let milliseconds = Int64(time / 1_000_000) + Int64(replay.offset(of: peer)) * 1_000
        return milliseconds - SimulatedRuntime.beginning - Int64(clock.now)
    }

    func lite(_ name: String) -> LitePeer {
        let database = replay.database(name)
        if let known = lites[name], known.database === database { return known }
        let lite = LitePeer(index: lites.count + 1, database, clock)
        lite.wall.offset = offset(of: name)
        lites[name] = lite
        return lite
    }

    // MARK: The Loveseat

    func body(_ id: String, in collection: String) -> JSONObject? {
        guard let current = tree(id, in: collection)?.current, !current.isDeleted else { return nil }
        return current.body.flatMap { JSONElement($0).value.object }
    }

    func tree(_ id: String, in collection: String) -> RevisionTree? {
        own.collections.firstIndex { $0.name.path == collection }.flatMap { own.tree(id, in: $0) }
    }

    func edit(_ operation: LiteOperation) throws {
        guard let place = own.collections.firstIndex(where: { $0.name.path == operation.collection }) else {
            return problems.append("no collection \(operation.collection)")
        }
        switch operation.edit {
        case .put(let body):
            let blobs = recording.blobs().compactMap { name, bytes in BlobDigest(name).map { ($0, bytes) } }
            try own.addBlobs(Dictionary(blobs) { one, _ in one })
            _ = try own.edit(operation.id, in: place, JSONText(canonical: .object(body)))
        case .delete: _ = try own.edit(operation.id, in: place, .emptyObject, isDeleted: true)
        case .purge: _ = try own.store.write { try $0.purge(operation.id, in: own.collections[place]) }
        case .unknown: problems.append("an unknown operation: \(operation.id)")
        }
    }

    /// Revisions from before the upgrade.
    private func importTrees(_ state: [JSONValue]) throws {
        for item in state {
            let line = [item["revision"]].compactMap { $0 } + (item["ancestors"]?.array ?? [])
            let incoming = IncomingRecord(
                documentID: item["id"]?.string ?? "",
                history: line.compactMap { $0.string.flatMap { RevisionID($0) } },
                isDeleted: item["deleted"]?.bool ?? false,
                body: JSONText(canonical: item["body"] ?? .object([:])),
                sender: .client
            )
            _ = try own.store.write { try $0.insert(incoming, in: own.collections[0]) }
        }
    }

    // MARK: The end

    private func compareLastPeers(_ ids: Set<String>) {
        // Stories without a connection have no peers to compare.
        guard let last = replay.steps.last(where: { $0["connection"] != nil }),
            last["options"]?.array?.contains("--both") == true,
            let active = last["active"]?.string, let passive = last["passive"]?.string
        else { return }
        disagreements = ids.sorted().filter {
            content($0, in: "_default", at: active) != content($0, in: "_default", at: passive)
        }
    }

    private func compare() {
        var last: [String: [JSONValue]] = [:]
        for step in replay.steps {
            if let peer = step["at"]?.string, let state = step["state"]?.array { last[peer] = state }
            for (peer, state) in step["states"]?.object ?? [:] { last[peer] = state.array ?? [] }
        }
        for (peer, state) in last.sorted(by: { $0.key < $1.key }) {
            for item in state {
                let id = item["id"]?.string ?? ""
                // The steps do not show edits of the active peer while it was connected.
                if id.hasPrefix("churn") { continue }
                let collection = item["collection"]?.string ?? "_default"
                let recorded = item["deleted"]?.bool == true ? nil : item["body"]
                let found = content(id, in: collection, at: peer)
                if found != recorded {
                    problems.append("\(id) at \(peer): \(found ?? "none"), recorded \(recorded ?? "none")")
                }
            }
        }
        compareLastPeers(Set(last.values.flatMap { $0 }.compactMap { $0["id"]?.string }))
        for collection in own.collections {
            for item in last[ownName] ?? []
            where tree(item["id"]?.string ?? "", in: collection.name.path)?.pending.isEmpty == false {
                problems.append("a conflict is left of \(item["id"] ?? "")")
            }
        }
    }

    private func content(_ id: String, in collection: String, at peer: String) -> JSONValue? {
        if peer == ownName { return body(id, in: collection).map { .object($0) } }
        guard let current = replay.database(peer).documents(in: collection)[id]?.current, !current.isDeleted
        else {
            return nil
        }
        return .object(current.body ?? [:])
    }

    private func describe() {
        for (name, lite) in lites {
            for (id, document) in lite.database.documents() {
                let marks = document.remotes.mapValues {
                    "\($0.revision.wholeText)\($0.isConflict ? " CONFLICT" : "")"
                }
                detail?(
                    "   \(name) \(id) \(document.current.wholeText) \(document.lastLegacy?.text ?? "") \(document.current.isDeleted ? "deleted" : "\(document.current.body ?? [:])") \(marks)"
                )
            }
        }
        for id in Set(lites.values.flatMap { $0.database.documents().keys }) {
            if let tree = tree(id, in: "_default") { detail?("   \(ownName) \(id) \(tree)") }
        }
    }
}
