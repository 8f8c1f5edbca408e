import LoveseatBLIP
import LoveseatModel

extension LiteReplay {
    /// Plays a connection, and compares what both sides have after it.
    mutating func play(_ number: Int, _ step: JSONValue) {
        let (activeName, passiveName) = (step["active"]?.string ?? "", step["passive"]?.string ?? "")
        let (active, passive) = (database(activeName), database(passiveName))
        let plan = plan(number, step)
        compareProtocols(number, plan, active, passive)
        // A refused upgrade has no messages.
        if let address = address(inConnection: number) {
            for (peer, database) in [(activeName, active), (passiveName, passive)] {
                let wall = wall(of: peer, number, active: activeName)
                database.wall = { wall }
            }
            let answer = recording.messages(number).first { !$0.isActive && $0.type == .response }
            let items = LiteSession.parse(answer?.message.body ?? [])?.array ?? []
            for (binding, item) in zip(plan.bindings, items) where !item.isNull {
                if passive.collections[binding.collection] == nil {
                    passive.collections[binding.collection] = LiteDatabase.Collection()
                }
            }
            installCheckpoints(number, plan, active, passive)
            let after = step["states"]?[activeName]?.array ?? []
            active.chooseTime = { [recording] id in
                Self.nextTime(of: id, active, recording.messages(number), after)
            }
            var connection = LiteReplayedConnection(
                active: LiteSession(active: active, plan, server: address),
                passive: LiteSession(passive: passive, client: "connection \(number)"),
                recording,
                number
            )
            connection.play()
            active.chooseTime = { _ in nil }
            for problem in connection.problems { note(problem) }
            compareErrors(connection.sessions[0], step["document errors"])
            compareErrors(connection.sessions[1], step["passive document errors"])
        }
        for (peer, state) in step["states"]?.object ?? [:] { compare(state, peer) }
    }

    private mutating func compareProtocols(
        _ number: Int,
        _ plan: LitePlan,
        _ active: LiteDatabase,
        _ passive: LiteDatabase
    ) {
        let offered = plan.offeredProtocols(active)
        let recorded = recording.protocols(number, isActive: true)
        if offered != recorded { note("A offers \(offered), recorded \(recorded ?? [])") }
        let accepted = passive.acceptedProtocol(of: offered)
        let answer = recording.protocols(number, isActive: false)?.first
        if accepted != answer { note("P accepts \(accepted ?? "nothing"), recorded \(answer ?? "nothing")") }
    }

    /// The errors of documents. Whether a refused proposal is reported, when a pull brings a conflict, depends on what comes first.
    private mutating func compareErrors(_ session: LiteSession, _ recorded: JSONValue?) {
        let own = session.documentErrors.filter { $0.error.text != "conflicts with server document" }
            .map { "\($0.id) \($0.error.code)" }
        let expected = (recorded?.array ?? [])
            .filter { $0["message"]?.string != "conflicts with server document" }
            .map { "\($0["id"]?.string ?? "") \($0["code"]?.int ?? 0)" }
        if own.sorted() != expected.sorted() { note("errors of documents: \(own), recorded \(expected)") }
    }

    func plan(_ number: Int, _ step: JSONValue) -> LitePlan {
        let request = recording.messages(number).first { $0.message.profile == "getCollections" }
        let body = LiteSession.parse(request?.message.body ?? [])
        let ids = body?["checkpoint_ids"]?.array?.compactMap(\.string) ?? []
        let paths = body?["collections"]?.array?.compactMap(\.string) ?? []
        let options = step["options"]?.array?.compactMap(\.string) ?? []
        func value(_ option: String) -> String? {
            options.firstIndex(of: option).flatMap {
                options.indices.contains($0 + 1) ? options[$0 + 1] : nil
            }
        }
        func list(_ option: String) -> [String]? { value(option)?.split(separator: ",").map(String.init) }
        var plan = LitePlan(
            zip(ids, paths).map {
                LitePlan.Binding(
                    $1,
                    checkpointID: $0,
                    documentIDs: list("--docids"),
                    channels: list("--channels")
                )
            }
        )
        plan.pushes = !options.contains("--pull")
        plan.pulls = !options.contains("--push")
        plan.isContinuous = options.contains("--continuous")
        plan.resetsCheckpoint = options.contains("--reset")
        if let prefix = value("--push-filter") { plan.pushFilter = { $0.hasPrefix(prefix) } }
        if let resolver = value("--resolver") { plan.resolver = Self.resolver(resolver) }
        return plan
    }

    private static func resolver(_ name: String) -> (LiteConflict) -> LiteResolution {
        switch name {
        case "local": { _ in .local }
        case "remote": { _ in .remote }
        case "delete": { _ in .deleted }
        case "merge":
            { conflict in
                var body = conflict.remote.body ?? [:]
                for (key, value) in conflict.local.body ?? [:] { body[key] = value }
                body["merged"] = true
                return .merged(body)
            }
        default:
            { _ in .merged(object(name.split(separator: ":", maxSplits: 1).last.map(String.init))) }
        }
    }

    /// The recorded time of a version that the active peer made during a connection, by resolving a conflict.
    private static func nextTime(
        of id: String,
        _ database: LiteDatabase,
        _ messages: [LiteRecording.Spoken],
        _ after: [JSONValue]
    ) -> UInt64? {
        var texts = after.filter { $0["id"]?.string == id }.compactMap { $0["vector"]?.string }
        for spoken in messages where spoken.isActive && spoken.message.profile == "proposeChanges" {
            for entry in LiteSession.parse(spoken.message.body)?.array ?? [] where entry[0]?.string == id {
                texts += [entry[1]?.string].compactMap { $0 }
            }
        }
        let last = database.documents()[id]?.current.vector.time(of: database.source) ?? 0
        return texts.compactMap { (try? StateHistory($0))?.vector.current }
            .filter { $0.source == database.source && $0.time > last }.map(\.time).min()
    }

    /// The reading of a peer's clock during a connection, by the time in the checkpoints that the active peer saved.
    private func wall(of peer: String, _ number: Int, active: String) -> UInt64 {
        let saved = recording.messages(number).filter { $0.message.profile == "setCheckpoint" }
        let seconds = saved.compactMap { LiteSession.parse($0.message.body)?["time"]?.int }.max()
        guard let seconds else { return .max / 2 }
        let base = seconds - offset(of: active) + offset(of: peer)
        return UInt64(max(0, base)).multipliedSaturated(by: 1_000_000_000)
    }

    /// How far a peer's clock is ahead, in seconds.
    func offset(of peer: String) -> Int {
        let text = recording.expected["clocks"]?[peer]?.string ?? "0"
        return Int(text.filter { $0 != "s" && $0 != "+" }) ?? 0
    }

    /// Databases with trees may have synced before the recording. That shows in the checkpoint that the passive one answers.
    private func installCheckpoints(
        _ number: Int,
        _ plan: LitePlan,
        _ active: LiteDatabase,
        _ passive: LiteDatabase
    ) {
        if !steps.contains(where: { $0["trees sync"] != nil }) { return }
        let answer = recording.messages(number).first { !$0.isActive && $0.type == .response }
        let items = LiteSession.parse(answer?.message.body ?? [])?.array ?? []
        for (binding, item) in zip(plan.bindings, items)
        where active.ownCheckpoints[binding.checkpointID] == nil {
            guard var body = item.object, let revision = body["rev"]?.string else { continue }
            body["rev"] = nil
            active.ownCheckpoints[binding.checkpointID] = LiteCheckpoint(body)
            let digits = revision.prefix { $0 != "-" }
            passive.peerCheckpoints[binding.checkpointID] = LiteDatabase.StoredCheckpoint(
                body: body,
                revision: Int(digits) ?? 1
            )
        }
    }
}
