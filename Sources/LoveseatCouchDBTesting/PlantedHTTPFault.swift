import LoveseatModel
package import LoveseatTesting

/// A mistake that a peer of CouchDB's wire, or something between two peers, could make. The simulator must notice every one of them;
/// otherwise its findings about the others are worth nothing.
package enum PlantedHTTPFault: String, CaseIterable, Sendable {
    /// The list of changes leaves the first leaf of a document out that has several.
    case leaveBranchOut
    /// The list of changes ends early, and claims to be whole: what a client does that believes a cut answer.
    case believeCutList
    /// Revisions are answered as stored, and are not.
    case acknowledgeEarly
    /// The server stores all but one revision of a batch, and does not say so.
    case forgetFailure
    /// The server says that it lacks nothing.
    case claimToHaveRevisions
    /// A revision is served with other content than it has.
    case serveOldContent
    /// The server does not say that it was started again.
    case hideRestart
    /// The answer to a client that waits for changes leaves them out, and says that it goes so far.
    case loseFedChanges
    /// The server asks no access policy.
    case ignoreRights
    /// A CouchDB takes 32 hexadecimal digits for text, and not for 16 bytes.
    case compareRevisionsAsText

    /// The world without which the mistake cannot show.
    private var world: SimulatedWorld? {
        switch self {
        case .hideRestart: .power
        case .loseFedChanges: .feeds
        case .ignoreRights: .rights
        case .compareRevisionsAsText: .couch
        default: nil
        }
    }

    /// Plants the mistake in one history after another.
    ///
    /// - Returns: the first seed whose history notices it, and has no problem without it; nil if there is none.
    package func search(_ seeds: ClosedRange<UInt64>, _ configure: (inout Simulation) -> Void = { _ in })
        throws
        -> UInt64?
    {
        for seed in seeds {
            var simulation = Simulation(seed: seed)
            configure(&simulation)
            if let world { simulation.worlds.insert(world) }
            simulation.wire = SimulatedHTTPWire(planting: self)
            guard try !simulation.run().problems.isEmpty else { continue }
            simulation.wire = SimulatedHTTPWire()
            if try simulation.run().problems.isEmpty { return seed }
        }
        return nil
    }

    /// Changes a request before the server gets it.
    func change(_ call: inout SimulatedCall, _ dice: inout SeededGenerator) {
        // Other faults change answers only, and not every request is changed.
        guard [.acknowledgeEarly, .forgetFailure].contains(self), call.endpoint == "_bulk_docs",
            dice.chance(0.3)
        else { return }
        // The wire may have cut the body.
        guard var body = try? JSONValue(parsing: String(decoding: call.body, as: UTF8.self)),
            let documents = body["docs"]?.array,
            !documents.isEmpty
        else { return }
        body["docs"] = .array(self == .acknowledgeEarly ? [] : Array(documents.dropLast()))
        call.body = JSONText(canonical: body).bytes
    }

    /// Changes an answer; returns whether it did.
    func change(_ answer: inout SimulatedAnswer, of call: SimulatedCall, _ dice: inout SeededGenerator)
        -> Bool
    {
        if self == .hideRestart {
            answer.headers.removeAll { $0.name.lowercased() == "loveseat-start" }
            return true
        }
        guard answer.status == 200, dice.chance(0.3),
            var body = try? JSONValue(parsing: String(decoding: answer.body, as: UTF8.self))
        else {
            return false
        }
        let rows = body["results"]?.array ?? []
        switch (self, call.endpoint) {
        case (.claimToHaveRevisions, "_revs_diff"): body = [:]
        case (.leaveBranchOut, "_changes"):
            body["results"] = .array(
                rows.map { row in
                    var row = row
                    if let changes = row["changes"]?.array, changes.count > 1 {
                        row["changes"] = .array(Array(changes.dropFirst()))
                    }
                    return row
                }
            )
        case (.believeCutList, "_changes") where rows.count > 1:
            body["results"] = .array(Array(rows.prefix(rows.count / 2)))
        case (.loseFedChanges, "_changes") where call.waitsForChanges && !rows.isEmpty:
            body["results"] = []
        case (.serveOldContent, "_bulk_get"):
            body["results"] = .array(
                rows.map { row in
                    guard var documents = row["docs"]?.array, documents.first?["ok"] != nil else {
                        return row
                    }
                    var row = row
                    documents[0]["ok"]?["n"] = -1
                    row["docs"] = .array(documents)
                    return row
                }
            )
        default: return false
        }
        answer.body = JSONText(canonical: body).bytes
        return true
    }
}

extension SimulatedCall {
    /// The last part of the path.
    fileprivate var endpoint: Substring { target.prefix { $0 != "?" }.split(separator: "/").last ?? "" }
}
