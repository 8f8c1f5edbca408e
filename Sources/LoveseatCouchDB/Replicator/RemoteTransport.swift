package import AsyncHTTPClient
package import LoveseatReplication

/// Stands between a replicator and the network: tests put one there that fails, delays and repeats.
package protocol RemoteTransport: Sendable {
    /// Changes the clock, on which what failed is tried again.
    func prepare(_ runtime: inout ReplicationRuntime)

    /// Sends a request, and returns its answer. `client`: makes the client with which it would be sent otherwise.
    func execute(
        _ request: HTTPClientRequest,
        with client: @concurrent @Sendable () async throws -> HTTPClient
    ) async throws -> HTTPClientResponse
}
