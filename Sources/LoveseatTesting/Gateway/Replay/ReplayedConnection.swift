private import Foundation
import LoveseatAssertions
import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatModel

/// One recorded connection, with the twin in the gateway's place.
struct ReplayedConnection {
    var replay: GatewayReplay
    private(set) var problems: [String] = []
    private let events: [GatewayRecording.Event]
    private let user: String
    private let name: String
    private var session: GatewaySession?
    /// The states of the database that a feed may have seen: those since its last list.
    private var moments: [Int: [GatewayDatabase]] = [:]
    /// The answers of the twin, by the number of the request.
    private var replies: [UInt64: Result<Message, ReplyError>] = [:]
    /// The twin's requests, by kind; lists are taken by their place.
    private var lists: [(Message, BLIPConnection.Tag?)] = []
    private var attachments: [(Message, BLIPConnection.Tag?)] = []
    private var revisions: [Message] = []
    private var recordedRevisions: [Message] = []
    /// The twin's tags of the gateway's requests.
    private var tags: [UInt64: BLIPConnection.Tag] = [:]
    /// Events that were performed before their turn.
    private var early: Set<Int> = []
    private var requests: [UInt64: Message] = [:]
    private var endsCleanly = false

    init(
        _ replay: GatewayReplay,
        _ part: GatewayRecording.Part,
        index: Int,
        user: String,
        database: String
    ) {
        (self.replay, events, self.user, name) = (replay, part.events, user, database)
    }

    private mutating func note(_ problem: String) { problems.append("\(user): \(problem)") }

    mutating func run() {
        for (place, event) in events.enumerated() where !early.contains(place) {
            switch event {
            case .http(let isClient, let lines): upgrade(isClient, lines)
            case .message(let spoken): replay(spoken, place)
            case .close: endsCleanly = true
            case .started, .stopped, .rest: perform(event)
            }
        }
        compareRevisions()
    }

    private mutating func perform(_ event: GatewayRecording.Event) {
        replay.perform(event)
        remember()
    }

    private mutating func remember() {
        // A client may ask for a database that does not exist.
        guard let database = replay.twin.databases[name] else { return }
        for index in moments.keys { moments[index]?.append(database) }
    }

    // MARK: The handshake

    private mutating func upgrade(_ isClient: Bool, _ lines: [String]) {
        if isClient {
            offered =
                lines.first { $0.lowercased().hasPrefix("sec-websocket-protocol:") }
                .map { $0.split(separator: ":", maxSplits: 1)[1] }
                .map { $0.split(separator: ",").map { String($0.drop { $0 == " " }) } } ?? []
            return
        }
        let status = (lines.first ?? "").split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        let answered = lines.first { $0.lowercased().hasPrefix("sec-websocket-protocol:") }
            .map { String($0.split(separator: ":", maxSplits: 1)[1].drop { $0 == " " }) }
        // Credentials are not recorded: nothing can be said of their refusal.
        if status == 401 { return }
        let request = GatewayTwin.Upgrade(
            database: name,
            login: (user, "pw-\(user)"),
            protocols: offered
        )
        do {
            let accepted = try replay.twin.accept(request)
            guard status == 101 else { return note("accepted, recorded \(status)") }
            if accepted.negotiated.rawValue != answered {
                note("speaks \(accepted.negotiated), recorded \(answered ?? "nothing")")
            }
            session = accepted.session
            session?.makeNonce = { [events] digest in Self.nonce(of: digest, in: events) }
        } catch {
            if error.status != status { note("refused with \(error.status), recorded \(status)") }
        }
    }

    private var offered: [String] = []

    private static func nonce(of digest: String, in events: [GatewayRecording.Event]) -> [UInt8]? {
        for case .message(let spoken) in events where !spoken.isClient {
            let message = spoken.message
            if message.profile == "proveAttachment", message.properties["digest"] == digest {
                return message.body
            }
        }
        return nil
    }

    // MARK: Messages

    private mutating func replay(_ spoken: GatewayRecording.Spoken, _ place: Int) {
        guard session != nil else { return note("a message without a connection") }
        switch (spoken.isClient, spoken.type) {
        case (true, .request): ask(spoken)
        case (true, .response), (true, .error): answer(spoken)
        case (false, .request): receive(spoken, place)
        case (false, .response), (false, .error): compareReply(spoken)
        case (_, .acknowledgeRequest), (_, .acknowledgeResponse):
            impossible("acknowledgement \(spoken.number) was read as a message")
        }
    }

    private mutating func ask(_ spoken: GatewayRecording.Spoken) {
        var message = spoken.message
        if let since = message.properties["since"].flatMap({ GatewaySequence(parsing: $0) }) {
            message.properties["since"] = replay.sequences.twin(since).json.description
        }
        requests[spoken.number] = message
        session?.receive(.request(number: spoken.number, message))
        // Revisions are handled beside each other: when, shows later.
        if message.profile == "rev" { return }
        session?.work(onRequest: spoken.number)
        collect()
        if message.profile == "subChanges", let database = replay.twin.databases[name] {
            moments[message.properties["collection"].flatMap { Int($0) } ?? -1] = [database]
        }
    }

    private mutating func answer(_ spoken: GatewayRecording.Spoken) {
        // The twin did not ask this, and the difference was noted with the question.
        guard let tag = tags.removeValue(forKey: spoken.number) else { return }
        if spoken.type == .error {
            let properties = spoken.message.properties
            let text = String(decoding: spoken.message.body, as: UTF8.self)
            let error = ReplyError(properties["Error-Domain"] ?? "", properties.int("Error-Code") ?? 0, text)
            session?.receive(.failure(tag, error))
        } else {
            session?.receive(.response(tag, spoken.message))
        }
        session?.workOnAnswers()
        collect()
        remember()
    }

    /// Takes what the twin said to its place.
    private mutating func collect() {
        for output in session?.drainOutput() ?? [] {
            switch output {
            case .reply(let message, let number): replies[number] = .success(message)
            case .failure(let error, let number): replies[number] = .failure(error)
            case .request(let message, let tag):
                switch message.profile {
                case "changes": lists.append((message, tag))
                case "rev", "norev":
                    revisions.append(message)
                    if let tag { revisionTags[Self.name(message), default: []].append(tag) }
                default: attachments.append((message, tag))
                }
            }
        }
    }

    private var revisionTags: [String: [BLIPConnection.Tag]] = [:]

    private static func name(_ revision: Message) -> String {
        GatewayReplay.key(revision.properties["id"], revision.properties["rev"])
    }

    /// Has the twin handle a revision that waits, and before it all that got earlier sequences.
    private mutating func handle(_ number: UInt64) {
        let waiting = session?.waitingRequests ?? []
        func sequence(_ message: Message) -> Int? { replay.known[Self.name(message)] }
        if let message = waiting.first(where: { $0.number == number })?.message, let own = sequence(message) {
            let earlier = waiting.compactMap { entry in sequence(entry.message).map { (entry.number, $0) } }
                .filter { $0.1 < own }.sorted { $0.1 < $1.1 }
            for (number, _) in earlier { session?.work(onRequest: number) }
        }
        session?.work(onRequest: number)
        collect()
        remember()
    }

    // MARK: Replies

    private mutating func compareReply(_ spoken: GatewayRecording.Spoken) {
        handle(spoken.number)
        var found = replies[spoken.number]
        if let request = requests[spoken.number], request.profile == "proposeChanges",
            let reply = found, difference(reply, spoken) != nil
        {
            // It may have been judged after something that came later.
            for (number, _) in session?.waitingRequests ?? [] { handle(number) }
            session?.receive(.request(number: spoken.number, request))
            session?.work(onRequest: spoken.number)
            collect()
            found = replies[spoken.number]
        }
        guard let found else {
            return note("no answer to \(requests[spoken.number]?.profile ?? "?") \(spoken.number)")
        }
        if let difference = difference(found, spoken) {
            note("\(requests[spoken.number]?.profile ?? "?") \(spoken.number): \(difference)")
        }
    }

    private func difference(_ found: Result<Message, ReplyError>, _ spoken: GatewayRecording.Spoken)
        -> String?
    {
        switch found {
        case .success(let message):
            guard spoken.type == .response else { return "a reply, recorded \(ReplyText(spoken.message))" }
            return Self.difference(message, spoken.message)
        case .failure(let error):
            guard spoken.type == .error else { return "\(error), recorded \(ReplyText(spoken.message))" }
            return Self.difference(error.message, spoken.message)
        }
    }

    private struct ReplyText: CustomStringConvertible {
        let description: String
        init(_ message: Message) {
            let pairs = message.properties.pairs.map { "\($0.name)=\($0.value)" }.sorted()
            description = "\(pairs) \(String(decoding: message.body.prefix(400), as: UTF8.self))"
        }
    }

    /// Describes how two messages differ, the order of properties aside; nil if they do not.
    private static func difference(_ own: Message, _ recorded: Message) -> String? {
        func sorted(_ message: Message) -> [String] {
            message.properties.pairs.map { "\($0.name)=\($0.value)" }.sorted()
        }
        let hasSameBody =
            own.body == recorded.body
            || (!own.body.isEmpty && GatewaySession.parse(own.body) == GatewaySession.parse(recorded.body)
                && GatewaySession.parse(own.body) != nil)
        let flags = (own.isCompressed, own.isUrgent, own.noReply)
        if sorted(own) == sorted(recorded), hasSameBody,
            flags == (recorded.isCompressed, recorded.isUrgent, recorded.noReply)
        {
            return nil
        }
        return "\(ReplyText(own)) \(flags), recorded \(ReplyText(recorded))"
    }

    // MARK: Requests of the gateway

    private mutating func receive(_ spoken: GatewayRecording.Spoken, _ place: Int) {
        switch spoken.message.profile {
        case "changes": receiveList(spoken, place)
        case "rev", "norev":
            recordedRevisions.append(spoken.message)
            let key = Self.name(spoken.message)
            if revisionTags[key]?.isEmpty == false { tags[spoken.number] = revisionTags[key]?.removeFirst() }
        default: receiveQuestion(spoken)
        }
    }

    /// The gateway asks for an attachment: so it handles a revision with it.
    private mutating func receiveQuestion(_ spoken: GatewayRecording.Spoken) {
        func match() -> Int? {
            attachments.firstIndex { Self.difference($0.0, spoken.message) == nil }
        }
        let digest = spoken.message.properties["digest"] ?? ""
        if match() == nil {
            for (number, message) in session?.waitingRequests ?? []
            where match() == nil && String(decoding: message.body, as: UTF8.self).contains(digest) {
                handle(number)
            }
        }
        guard let index = match() else {
            return note(
                "does not ask \(ReplyText(spoken.message)), but \(attachments.map { ReplyText($0.0) })"
            )
        }
        if let tag = attachments.remove(at: index).1 { tags[spoken.number] = tag }
    }

    private mutating func receiveList(_ spoken: GatewayRecording.Spoken, _ place: Int) {
        let rows = spoken.rows ?? []
        let index = spoken.message.properties["collection"].flatMap { Int($0) } ?? -1
        for row in rows {
            let key = GatewayReplay.key(row[1]?.string, row[2]?.string)
            let waiting = session?.waitingRequests.first { Self.name($0.message) == key }
            if let waiting { handle(waiting.number) }
        }
        guard let moment = moment(of: rows, index, place) else {
            let own = session?.lookAhead(index).map { "\($0.json(.mobile3))" } ?? []
            note("announces \(own), recorded \(JSONValue.array(rows))")
            return
        }
        session?.advanceFeed(index, reading: moment, limit: max(1, rows.count))
        collect()
        guard let (message, tag) = lists.first else { return note("announces nothing, recorded \(rows)") }
        lists.removeFirst()
        if let tag { tags[spoken.number] = tag }
        var own = message
        own.body = GatewaySession.json(translated(GatewaySession.parse(message.body) ?? .null))
        if let difference = Self.difference(own, spoken.message) { note("list: \(difference)") }
    }

    /// The twin's rows with the recording's sequences.
    private func translated(_ rows: JSONValue) -> JSONValue {
        guard let items = rows.array else { return rows }
        return .array(
            items.map { row in
                guard var row = row.array, let own = GatewaySequence(parsing: row[0].description) else {
                    return row
                }
                row[0] = replay.sequences.recorded(own).json
                return .array(row)
            }
        )
    }

    /// When the feed looked: a database as it was at some time since its last list, with which the twin announces the same.
    private mutating func moment(of rows: [JSONValue], _ index: Int, _ place: Int) -> GatewayDatabase? {
        let isWhole = session?.feeds[index]?.query.isContinuous == false
        let all = isWhole ? remainingRows(index, place) : rows
        if let found = search(all, index, isWhole: isWhole) { return found }
        for row in rows {
            let (id, revision) = (row[1]?.string, row[2]?.string)
            let documents = replay.twin.databases[name]?.keyspaces.values.compactMap {
                $0.documents[id ?? ""]
            }
            guard documents?.contains(where: { $0.revisions[revision ?? ""] != nil }) != true else {
                continue
            }
            guard replay.playPart(thatPushes: GatewayReplay.key(id, revision)) else { continue }
            remember()
            if let found = search(all, index, isWhole: isWhole) { return found }
        }
        // REST requests are written down when they were answered, and seen before.
        let before = (replay, replay.twin.databases, moments, early)
        for (later, event) in events.enumerated().dropFirst(place + 1) where !early.contains(later) {
            guard case .rest = event else { continue }
            early.insert(later)
            perform(event)
            if let found = search(all, index, isWhole: isWhole) { return found }
        }
        (replay, replay.twin.databases, moments, early) = before
        return nil
    }

    private mutating func search(_ rows: [JSONValue], _ index: Int, isWhole: Bool) -> GatewayDatabase? {
        guard let session else { return nil }
        for (place, moment) in (moments[index] ?? []).enumerated().reversed() {
            let own = session.lookAhead(index, reading: moment)
            guard isWhole || rows.isEmpty ? own.count == rows.count : own.count >= rows.count else {
                continue
            }
            var trial = replay.sequences
            let agrees = zip(rows, own).allSatisfy { recorded, own in
                guard recorded[1]?.string == own.id, recorded[2]?.string == own.revision,
                    let sequence = GatewaySequence(parsing: recorded[0]?.description ?? ""),
                    own.json(session.negotiated)[3] == recorded[3]
                else { return false }
                return trial.pair(sequence, own.sequence)
            }
            guard agrees else { continue }
            replay.sequences = trial
            moments[index] = Array((moments[index] ?? []).dropFirst(place))
            return moment
        }
        return nil
    }

    /// The rows of this list and of those that follow until the feed is caught up.
    private func remainingRows(_ index: Int, _ place: Int) -> [JSONValue] {
        var rows: [JSONValue] = []
        for case .message(let spoken) in events.dropFirst(place) {
            guard let more = spoken.rows,
                spoken.message.properties["collection"].flatMap({ Int($0) }) ?? -1 == index
            else { continue }
            if more.isEmpty { break }
            rows += more
        }
        return rows
    }

    // MARK: Revisions

    private mutating func compareRevisions() {
        var rest = recordedRevisions
        for revision in revisions {
            var own = revision
            if let sequence = own.properties["sequence"].flatMap({ GatewaySequence(parsing: $0) }) {
                own.properties["sequence"] = replay.sequences.recorded(sequence).json.description
            }
            if let index = rest.firstIndex(where: { Self.difference(own, $0) == nil }) {
                rest.remove(at: index)
            } else if endsCleanly {
                note(
                    "sends \(ReplyText(own)) \(own.isCompressed) \(own.noReply), recorded \(rest.map { ReplyText($0) })"
                )
            }
        }
        for revision in rest { note("does not send \(ReplyText(revision))") }
    }
}
