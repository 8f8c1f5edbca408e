private import Foundation
import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// Drives the gateway's twin through a recorded story, and compares what it says with what the gateway said.
///
/// Compared are every reply (type, flags, properties, body), every list with its rows in their order, and every `rev` and
/// `norev` of a connection. Masked are times, sequences that the gateway left unused, the order of properties, and the order
/// of what a gateway handles at the same time. Credentials are not recorded: a connection is taken for that of the user
/// with whom the twin says the same.
package struct GatewayReplay {
    private let recording: GatewayRecording
    let functions: (String) -> SyncFunction?
    let twin = GatewayTwin()
    var sequences = SequenceMap()
    /// The differences, in words.
    package private(set) var problems: [String] = []
    /// How much differed for each user, by the checkpoints that connections used.
    private var scores: [String: [String: Int]] = [:]
    /// The parts that ran already, because an earlier one showed what they did.
    private var done: Set<Int> = []
    /// The sequence that a revision had, by document and revision.
    private(set) var known: [String: Int] = [:]

    package init(_ recording: GatewayRecording) {
        self.recording = recording
        functions = { SyncScript($0)?.syncFunction }
        for row in recording.parts.flatMap(\.messages).compactMap(\.rows).joined() {
            guard let sequence = GatewaySequence(parsing: row[0]?.description ?? "") else { continue }
            known[Self.key(row[1]?.string, row[2]?.string)] = sequence.sequence
        }
    }

    static func key(_ id: String?, _ revision: String?) -> String { "\(id ?? "")\u{0}\(revision ?? "")" }

    /// Plays a recording, and returns what differs. A first pass finds out whose checkpoint is whose.
    package static func differences(in recording: GatewayRecording) -> [String] {
        var first = GatewayReplay(recording)
        first.play()
        if first.problems.isEmpty { return [] }
        var second = GatewayReplay(recording)
        second.scores = first.scores
        second.play()
        return second.problems
    }

    private mutating func play() {
        for index in recording.parts.indices { playPart(index) }
    }

    private mutating func playPart(_ index: Int) {
        // A connection that overlapped this one may have played it.
        guard done.insert(index).inserted else { return }
        let part = recording.parts[index]
        guard part.isConnection else {
            for event in part.events { perform(event) }
            return
        }
        expireDocuments(seenIn: part)
        let clients = Self.clients(of: part)
        let name = Self.database(of: part)
        let users = twin.databases[name]?.users.filter { !$0.value.isDeleted }.keys.sorted() ?? []
        let candidates = users.sorted { (score($0, clients), $0) < (score($1, clients), $1) }
        let before = State(self)
        var best: (problems: Int, state: State)?
        for user in candidates {
            before.restore(&self)
            let found = play(part, index, as: user, in: name)
            for client in clients { scores[client, default: [:]][user, default: 0] += found.count }
            problems += found.map { "connection \(index): \($0)" }
            if best.map({ problems.count < $0.problems }) ?? true { best = (problems.count, State(self)) }
        }
        best?.state.restore(&self)
    }

    private func score(_ user: String, _ clients: [String]) -> Int {
        clients.reduce(0) { $0 + (scores[$1]?[user] ?? 0) }
    }

    /// The state that a connection must not change if it was taken for the wrong user's.
    private struct State {
        let databases: [String: GatewayDatabase]
        let sequences: SequenceMap
        let done: Set<Int>
        let problems: [String]

        init(_ replay: GatewayReplay) {
            databases = replay.twin.databases
            (sequences, done, problems) = (replay.sequences, replay.done, replay.problems)
        }

        func restore(_ replay: inout GatewayReplay) {
            replay.twin.databases = databases
            (replay.sequences, replay.done, replay.problems) = (sequences, done, problems)
        }
    }

    private mutating func play(_ part: GatewayRecording.Part, _ index: Int, as user: String, in name: String)
        -> [String]
    {
        var play = ReplayedConnection(self, part, index: index, user: user, database: name)
        play.run()
        let found = play.problems
        self = play.replay
        return found
    }

    /// The checkpoints that a connection uses.
    private static func clients(of part: GatewayRecording.Part) -> [String] {
        part.messages.filter { $0.isClient && $0.type == .request }.flatMap { spoken in
            spoken.message.properties["client"].map { [$0] }
                ?? GatewaySession.parse(spoken.message.body)?["checkpoint_ids"]?.array?.compactMap(\.string)
                ?? []
        }
    }

    private static func database(of part: GatewayRecording.Part) -> String {
        for case .http(true, let lines) in part.events {
            let words = (lines.first ?? "").split(separator: " ")
            return words.count > 1 ? String(words[1].split(separator: "/").first ?? "") : ""
        }
        return ""
    }

    // MARK: Events at the gateway

    mutating func perform(_ event: GatewayRecording.Event) {
        switch event {
        case .started(let databases):
            twin.restart()
            for (name, configuration) in databases where twin.databases[name] == nil {
                // Databases that are made over REST stand in the first event as well.
                guard !isMadeLater(name) else { continue }
                twin.databases[name] = GatewayDatabase(configuration: configuration, functions: functions)
            }
        case .rest(let request, let status, let answer): perform(request, status, answer)
        case .stopped, .http, .message, .close: break
        }
    }

    private func isMadeLater(_ name: String) -> Bool {
        recording.parts.flatMap(\.events).contains { event in
            guard case .rest(let request, _, _) = event else { return false }
            return request.method == "PUT" && (request.path == "/\(name)/" || request.path == "/\(name)")
        }
    }

    private mutating func perform(_ request: GatewayTwin.RESTRequest, _ status: Int, _ answer: JSONValue?) {
        var request = request
        if request.method == "PUT", request.path.contains("/_user/"), request.body?["password"] == nil {
            // Passwords are left out of recordings.
            let name = request.path.split(separator: "/").last ?? ""
            request.body?["password"] = .string("pw-\(name)")
        }
        let found = twin.perform(request, functions: functions)
        let what = "\(request.method) \(request.path)"
        if found.status != status {
            problems.append("\(what): \(found.status), recorded \(status)")
        } else if let recorded = answer?["rev"] ?? answer?["purged"],
            let own = found.body?["rev"] ?? found.body?["purged"], recorded != own
        {
            problems.append("\(what): \(own), recorded \(recorded)")
        }
    }

    /// Expiry is not an event of the recording; its tombstones show.
    private mutating func expireDocuments(seenIn part: GatewayRecording.Part) {
        for row in part.messages.compactMap(\.rows).joined() {
            guard let id = row[1]?.string else { continue }
            for name in twin.databases.keys.sorted() {
                for path in twin.databases[name]?.keyspaces.keys.sorted() ?? [] {
                    guard let document = twin.databases[name]?.keyspaces[path]?.documents[id],
                        document.expires,
                        !document.isDeleted
                    else { continue }
                    // Unlike a deletion over REST, an expiry is not a part of the digest.
                    let tombstone = GatewayDatabase.revision(
                        parent: document.current,
                        body: [:],
                        isDeleted: false
                    )
                    // If the sync function refuses the tombstone, the rows differ from the recorded ones.
                    if row[2]?.string == tombstone { try? twin.databases[name]?.expire(id, in: path) }
                }
            }
        }
    }

    // MARK: Overlapping connections

    /// Connections that overlapped are written one after the other: a revision that is announced before anybody pushed it
    /// comes from a later part. Plays that part now; false if there is none.
    mutating func playPart(thatPushes key: String) -> Bool {
        let index = recording.parts.indices.first { index in
            !done.contains(index)
                && recording.parts[index].messages.contains { spoken in
                    let properties = spoken.message.properties
                    return spoken.isClient && spoken.message.profile == "rev"
                        && Self.key(properties["id"], properties["rev"]) == key
                }
        }
        guard let index else { return false }
        playPart(index)
        return true
    }
}
