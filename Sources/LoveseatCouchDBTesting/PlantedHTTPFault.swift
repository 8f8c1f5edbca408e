import LoveseatModel
package import LoveseatTesting

/// A mistake that a peer of CouchDB's wire, or something between two peers, could make. The simulator must notice every one of them;
/// otherwise its findings about the others are worth nothing.
package enum PlantedHTTPFault: String, CaseIterable, Sendable {
    /// The list of changes names one leaf of a document that has several.
    case leaveBranchOut
    /// The list of changes ends early, and claims to be whole: what a client does that believes a cut answer.
    case believeCutList
    /// Revisions are answered as stored, and are not.
    case acknowledgeEarly
    /// The server stores all but one revision of a batch, and does not say so.
    case forgetFailure
    /// The server says that it lacks nothing.
    case claimToHaveRevisions
    /// The checkpoint that the server keeps is ahead of what was pulled.
    case skipCheckpoint
    /// A revision is served with the content that another revision of the document had.
    case serveOldContent
    /// An attachment is served with the content of another one.
    case serveOldStub

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
            simulation.wire = SimulatedHTTPWire(planting: self)
            guard try !simulation.run().problems.isEmpty else { continue }
            simulation.wire = SimulatedHTTPWire()
            if try simulation.run().problems.isEmpty { return seed }
        }
        return nil
    }

    /// Changes a request before the server gets it.
    func change(_ call: inout SimulatedCall, _ dice: inout SeededGenerator) {}

    /// Changes an answer; returns whether it did.
    func change(_ answer: inout SimulatedAnswer, of call: SimulatedCall, _ dice: inout SeededGenerator)
        -> Bool
    { false }
}
