import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import Testing

extension ReplayedPeer {
    /// An active session of the default collection with a puppet as its passive peer, which has answered the opening
    /// questions.
    ///
    /// `named`: collections besides the default one.
    func activeLine(
        _ negotiated: ReplicationProtocol = .mobile3,
        named: [CollectionName] = [],
        answering extensions: MessageProperties = [:],
        _ change: (inout ActivePlan) -> Void = { _ in }
    ) throws -> Line {
        let names = [.default] + named
        let handles = try names.map { try collection($0) }
        let bindings = names.map { ActivePlan.Binding(name: $0, checkpointID: "cp-x") }
        var plan = ActivePlan(collections: bindings, pushes: false, pulls: true, isContinuous: false)
        change(&plan)
        let store = store
        let remote = try store.write { try $0.checkpointTables.remoteNumber("puppet") }
        let line = Line(
            { ReplicationSession(active: plan, replicas: $0) },
            DatabaseReplicas(
                store: store,
                collections: handles,
                checkpointIDs: names.map { _ in "cp-x" },
                remote: remote,
                nowMilliseconds: { 0 }
            ),
            resolve: { _ in nil }
        )
        try line.connect(negotiated)
        for request in line.requests where request.message.profile == "getCollections" {
            let none = "[\(names.map { _ in "{}" }.joined(separator: ","))]"
            try line.puppet.reply(Message([:], body: Array(none.utf8)), to: request.number)
        }
        for request in line.requests where request.message.profile == "getCheckpoint" {
            try line.puppet.reply(ReplyError("HTTP", 404, "missing"), to: request.number)
        }
        try line.runUntilQuiet()
        for request in line.requests where request.message.profile == "subChanges" {
            try line.puppet.reply(Message(extensions), to: request.number)
        }
        try line.runUntilQuiet()
        return line
    }

    func record(_ id: String) throws -> DocumentRecord? {
        let handle = try collection(.default)
        return try store.readRows { try $0.record(id, in: handle) }
    }

    func count() throws -> Int {
        let handle = try collection(.default)
        var count = 0
        try store.read {
            try $0.changes(in: handle, since: 0) { _ in
                count += 1; return true
            }
        }
        return count
    }
}

extension ReplayedPeer.Line {
    /// Takes the requests of a kind that have come since the last call.
    @discardableResult
    func take(_ profile: String) -> [ReplayedPeer.Heard] {
        defer { requests.removeAll { $0.message.profile == profile } }
        return requests.filter { $0.message.profile == profile }
    }

    /// Answers every checkpoint that is saved, and returns the last.
    @discardableResult
    func takeCheckpoints() throws -> JSONElement? {
        var last: JSONElement?
        while let save = take("setCheckpoint").first {
            last = try JSONElement(parsing: save.message.body)
            try puppet.reply(Message(["rev": "0-1"]), to: save.number)
            try runUntilQuiet()
        }
        return last
    }
}

func code(_ result: Result<Message, ReplyError>) -> String {
    switch result {
    case .success: "ok"
    case .failure(let error): "\(error.domain)/\(error.code)"
    }
}

extension ReplayedPeer {
    /// A passive session, asked in the form of 2.x.
    ///
    /// `refuse`: the app's filter of what peers push.
    func passiveLine(
        user: String = "bob",
        proven: ProvenBlobs = ProvenBlobs(),
        under policy: AccessPolicy? = nil,
        _ change: (inout PassivePlan) -> Void = { _ in },
        refuse: ((FilterCandidate) -> LoveseatError?)? = nil
    ) throws -> Line {
        _ = try collection(.default)
        var plan = PassivePlan(collections: [.default])
        (plan.restrictsAccess, plan.filtersIncoming) = (policy != nil, refuse != nil)
        change(&plan)
        let peer = PeerIdentity(username: user)
        let line = Line(
            { ReplicationSession(passive: plan, replicas: $0) },
            DatabaseReplicas(
                store: store,
                peer: peer,
                access: policy.map { PeerAccess(peer: peer, policy: $0) },
                incomingFilter: refuse,
                proven: proven,
                nowMilliseconds: { 0 }
            ),
            resolve: { _ in nil }
        )
        try line.connect(.mobile3)
        return line
    }
}
