package import LoveseatCore
package import LoveseatReplication

/// A wire other than BLIP, whose client and server run in the simulator's histories.
package protocol SimulatedWire: Sendable {
    /// The mistake that is planted, in words; nil for none.
    var mistake: String? { get }

    /// The same wire without the mistake.
    var withoutMistake: any SimulatedWire { get }

    /// Returns the databases of a peer that speaks this wire and is not a Loveseat.
    func makeForeignDatabases(of peer: Int) -> any ForeignDatabases

    /// Begins a connection to a peer. `faults`: to how many of the requests something happens. `policy`: decides which documents the peer
    /// lets its users have; nil if everybody may do everything. `seed` decides what happens, and when. `trace` takes a line for each event.
    func link(
        to target: SimulatedPeer,
        _ runtime: SimulatedRuntime,
        _ faults: Double,
        under policy: AccessPolicy?,
        seed: UInt64,
        _ trace: @escaping (String) -> Void
    ) -> any SimulatedWireLink
}

/// A connection over another wire.
package protocol SimulatedWireLink: AnyObject {
    /// The errors of HTTP with which somebody on the way answered in the peer's place.
    var errorsOnTheWay: Set<Int> { get }

    func replicate(with request: ReplicationRequest) async throws -> any Replication

    /// All that is under way is lost.
    func cut()

    /// The process of the active side died, and sends nothing more.
    func kill()
}
