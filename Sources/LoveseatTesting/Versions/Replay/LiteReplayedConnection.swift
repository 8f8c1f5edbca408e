import LoveseatBLIP
import LoveseatModel

/// One connection of a ``LiteReplay``: both sides are driven by what the real ones said, and each is compared with the real one.
struct LiteReplayedConnection {
    /// The active side first.
    let sessions: [LiteSession]
    let recording: LiteRecording
    let number: Int
    /// The differences, in words.
    var problems: [String] = []
    /// The messages that the sides have said and the recording has not shown yet.
    private var pools: [[LiteSession.Output]] = [[], []]
    private var tags: [[UInt64: BLIPConnection.Tag]] = [[:], [:]]
    /// The checkpoints that the active side might have saved.
    private var checkpoints: [Int: [LiteCheckpoint]] = [:]
    private let isContinuous: Bool
    private(set) var wasCut = false
    /// The acts that are done. Some were before the message behind which they are recorded.
    private var performed: Set<Int> = []

    init(active: LiteSession, passive: LiteSession, _ recording: LiteRecording, _ number: Int) {
        sessions = [active, passive]
        self.recording = recording
        self.number = number
        isContinuous = active.plan?.isContinuous == true
    }

    mutating func note(_ problem: String) { problems.append(problem) }

    /// Plays the connection.
    mutating func play() {
        sessions[0].start()
        collect()
        for (place, event) in recording.connections[number - 1].enumerated() {
            switch event {
            case .act: performActs(at: place)
            case .message(let spoken): play(spoken, place)
            case .http: break
            }
            collect()
        }
        finish()
    }

    private mutating func collect() {
        for side in sessions.indices { pools[side] += sessions[side].drainOutput() }
        for index in 0..<sessions[0].collectionCount {
            let checkpoint = sessions[0].checkpoint(index)
            if checkpoints[index]?.last != checkpoint { checkpoints[index, default: []].append(checkpoint) }
        }
    }

    // MARK: Messages

    private mutating func play(_ spoken: LiteRecording.Spoken, _ place: Int) {
        let side = spoken.isActive ? 0 : 1
        if spoken.type == .request {
            // A revision that was lost when the network was cut changed nothing.
            if isLost(spoken) { return }
            if isContinuous { for session in sessions { session.advance() } }
            prepare(spoken, place)
            performActs(before: spoken, place)
            collect()
            matchRequest(spoken, side)
            sessions[1 - side].receive(.request(number: spoken.number, spoken.message))
        } else {
            matchReply(spoken, side)
            // A difference that was noted may have lost the request.
            guard let tag = tags[1 - side].removeValue(forKey: spoken.number) else { return }
            if spoken.type == .error {
                sessions[1 - side].receive(.failure(tag, Self.error(spoken.message)))
            } else {
                sessions[1 - side].receive(.response(tag, spoken.message))
            }
        }
    }

    /// Whether a connection was cut before the other side worked on a revision.
    private func isLost(_ spoken: LiteRecording.Spoken) -> Bool {
        guard spoken.message.profile == "rev" else { return false }
        let events = recording.connections[number - 1]
        let isCut = events.contains { if case .act(let act) = $0 { act["cut"] != nil } else { false } }
        return isCut
            && !recording.messages(number).contains {
                $0.isActive != spoken.isActive && $0.type != .request && $0.number == spoken.number
            }
    }

    private static func error(_ message: Message) -> ReplyError {
        let text = String(decoding: message.body, as: UTF8.self)
        let code = message.properties.int("Error-Code") ?? 0
        return ReplyError(message.properties["Error-Domain"] ?? "", code, text)
    }

    private mutating func matchRequest(_ spoken: LiteRecording.Spoken, _ side: Int) {
        let place = pools[side].firstIndex { output in
            guard case .request(let message, _) = output else { return false }
            return Self.isSame(message, spoken.message)
        }
        guard let place else {
            if isContinuous, spoken.message.body == Array("[]".utf8) { return }
            let own = pools[side].map(Self.text)
            return note("\(side == 0 ? "A" : "P") does not say \(spoken.message), but \(own)")
        }
        if case .request(_, let tag?) = pools[side].remove(at: place) { tags[side][spoken.number] = tag }
    }

    private mutating func matchReply(_ spoken: LiteRecording.Spoken, _ side: Int) {
        let place = pools[side].firstIndex { output in
            switch output {
            case .request: false
            case .reply(_, let number), .failure(_, let number, _): number == spoken.number
            }
        }
        guard let place else {
            return note("\(side == 0 ? "A" : "P") does not answer \(spoken.number): \(spoken.message)")
        }
        let own = pools[side].remove(at: place)
        let isSame =
            switch own {
            case .request: false
            case .reply(let message, _): spoken.type == .response && Self.isSame(message, spoken.message)
            case .failure(let error, _, let isUrgent):
                spoken.type == .error && error == Self.error(spoken.message)
                    && isUrgent == spoken.message.isUrgent
            }
        if !isSame {
            note(
                "\(side == 0 ? "A" : "P") answers \(spoken.number) \(Self.text(own)), recorded \(spoken.message)"
            )
        }
    }

    private static func text(_ output: LiteSession.Output) -> String {
        switch output {
        case .request(let message, _): "\(message)"
        case .reply(let message, let number): "re\(number) \(message)"
        case .failure(let error, let number, _): "re\(number) \(error)"
        }
    }

    /// Whether two messages say the same. Bodies are compared as JSON of the same length.
    private static func isSame(_ own: Message, _ recorded: Message) -> Bool {
        guard own.properties == recorded.properties, own.isUrgent == recorded.isUrgent,
            own.isCompressed == recorded.isCompressed, own.noReply == recorded.noReply
        else { return false }
        if own.body == recorded.body { return true }
        guard own.body.count == recorded.body.count, let one = LiteSession.parse(own.body),
            let other = LiteSession.parse(recorded.body)
        else {
            return false
        }
        return one == other
    }

    // MARK: Known to the recording only

    /// Has the active side do what it does after a delay, or what was done to its database meanwhile.
    private mutating func prepare(_ spoken: LiteRecording.Spoken, _ place: Int) {
        if !spoken.isActive { return }
        switch spoken.message.profile {
        case "setCheckpoint":
            guard let index = spoken.message.properties.int("collection"),
                let body = LiteSession.parse(spoken.message.body)?.object
            else { return note("an invalid checkpoint: \(spoken.message)") }
            let saved = LiteCheckpoint(body)
            let possible = checkpoints[index] ?? []
            let isPossible =
                possible.contains { $0.completed == saved.completed }
                && possible.contains { ($0.remote?.json.int ?? 0) >= (saved.remote?.json.int ?? 0) }
            if !isPossible { note("the checkpoint \(JSONValue.object(body)) is never reached") }
            sessions[0].saveCheckpoint(index, as: body)
            collect()
        case "proposeChanges":
            if !isContinuous { return }
            for entry in LiteSession.parse(spoken.message.body)?.array ?? [] { editFirst(entry, place) }
            sessions[0].advance()
            collect()
        default: break
        }
    }

    /// The active peer's database was edited meanwhile, if it proposes what the model does not have.
    private mutating func editFirst(_ entry: JSONValue, _ place: Int) {
        let database = sessions[0].database
        // Most proposals are of what the model has.
        guard let id = entry[0]?.string, let text = entry[1]?.string,
            let version = (try? StateHistory(text))?.vector.current, version.source == database.source,
            database.documents()[id]?.current.vector.current != version
        else { return }
        let revision = recording.connections[number - 1].dropFirst(place).lazy.compactMap { event in
            if case .message(let spoken) = event, spoken.message.profile == "rev" {
                spoken.message
            } else {
                nil
            }
        }.first { $0.properties["id"] == id && $0.properties["rev"] == version.text }
        guard let revision else { return note("\(id) is proposed and never sent") }
        database.chooseTime = { _ in version.time }
        defer { database.chooseTime = { _ in nil } }
        var body = LiteSession.parse(revision.body) ?? [:]
        if revision.properties["deltaSrc"] != nil {
            let old = database.documents()[id]?.current.body ?? [:]
            body = (try? JSONDelta.apply(body, to: .object(old))) ?? [:]
        }
        do {
            if revision.properties["deleted"] != nil {
                try database.delete(id)
            } else {
                try database.edit(id, body.object ?? [:])
            }
        } catch { note("\(id) cannot be edited: \(error)") }
    }

    /// Performs the acts that are recorded at a place, and not performed yet.
    private mutating func performActs(at place: Int) {
        for (index, event) in recording.connections[number - 1].enumerated().dropFirst(place) {
            // Something else ends them.
            guard case .act(let act) = event else { return }
            if performed.insert(index).inserted { perform(act) }
        }
    }

    /// The passive peer may have been changed before it got a request behind which that is recorded, or before it sent one that shows it.
    private mutating func performActs(before spoken: LiteRecording.Spoken, _ place: Int) {
        if spoken.isActive {
            if spoken.message.profile == "rev" { performActs(at: place + 1) }
            return
        }
        let text = String(decoding: spoken.message.body, as: UTF8.self)
        for (index, event) in recording.connections[number - 1].enumerated().dropFirst(place) {
            guard case .act(let act) = event, let time = act["rev"]?.string?.dropLast(), text.contains(time)
            else { continue }
            if performed.insert(index).inserted { perform(act) }
        }
    }

    private mutating func perform(_ act: JSONValue) {
        if act["cut"] != nil {
            wasCut = true
            return
        }
        let database = sessions[1].database
        let text = act["rev"]?.string ?? ""
        let time = text.split(separator: "@").first.flatMap { UInt64($0, radix: 16) }
        database.chooseTime = { _ in time }
        defer { database.chooseTime = { _ in nil } }
        do {
            if let id = act["put"]?.string {
                try database.edit(id, act["body"]?.object ?? [:])
            } else if let id = act["delete"]?.string {
                try database.delete(id)
            } else if let id = act["purge"]?.string {
                database.purge(id)
            }
        } catch { note("the act \(act) fails: \(error)") }
        sessions[1].advance()
    }

    // MARK: The end

    private mutating func finish() {
        if wasCut { return }
        for side in sessions.indices {
            for output in pools[side] {
                if isContinuous, case .request(let message, _) = output, message.body == Array("[]".utf8) {
                    continue
                }
                note("\(side == 0 ? "A" : "P") also says \(Self.text(output))")
            }
        }
        for index in 0..<sessions[0].collectionCount {
            let checkpoint = sessions[0].checkpoint(index)
            if checkpoint != sessions[0].savedCheckpoint(index) {
                let body = JSONValue.object(checkpoint.body(time: 0))
                let saved = JSONValue.object(sessions[0].savedCheckpoint(index).body(time: 0))
                note("the checkpoint is \(body) at the end, recorded \(saved)")
            }
        }
    }
}
