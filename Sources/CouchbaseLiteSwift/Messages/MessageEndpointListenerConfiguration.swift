public import LoveseatNetwork

/// The settings of a ``MessageEndpointListener``.
public struct MessageEndpointListenerConfiguration: Sendable {
    /// The collections to serve, all of one database.
    public let collections: [Collection]
    /// Whether the transports preserve messages or are streams of bytes. Both sides need the same.
    public let protocolType: ProtocolType

    /// Creates a configuration. At least one collection is needed, and all have to be of one `Database`.
    public init(collections: [Collection], protocolType: ProtocolType) {
        requireOneDatabase(collections)
        self.collections = collections
        self.protocolType = protocolType
    }

    var engine: LoveseatNetwork.MessageEndpointListenerConfiguration {
        LoveseatNetwork.MessageEndpointListenerConfiguration(
            collections: collections.map(\.engine),
            protocolType: protocolType
        )
    }
}

/// A change of a connection of a ``MessageEndpointListener``.
public struct MessageEndpointListenerChange {
    /// The connection.
    public let connection: any MessageEndpointConnection
    /// The connection's state, progress and error.
    public let status: Replicator.Status
}
