public import Foundation
import LoveseatIdentity
public import LoveseatNetwork

/// The configuration of a listener, of which earlier apps know one database.
private protocol ListenerConfiguration {
    var collections: [Collection] { get }
}

extension ListenerConfiguration {
    fileprivate static func defaultCollections(of database: Database) -> [Collection] {
        do { return [try database.defaultCollection()] } catch {
            programmerError("a listener needs an open database: \(error.localizedDescription)")
        }
    }

    fileprivate var servedDatabase: Database {
        guard let database = collections.first?.database else {
            programmerError("a listener serves at least one collection")
        }
        return database
    }
}

extension URLEndpointListenerConfiguration: ListenerConfiguration {
    /// Creates a configuration that serves the default collection of a database.
    @available(*, deprecated, message: "use init(collections:)")
    public init(database: Database) { self.init(collections: Self.defaultCollections(of: database)) }

    /// The database that is served.
    @available(*, deprecated, message: "use the database of a collection")
    public var database: Database { servedDatabase }
}

extension MessageEndpointListenerConfiguration: ListenerConfiguration {
    /// Creates a configuration that serves the default collection of a database.
    @available(*, deprecated, message: "use init(collections:protocolType:)")
    public init(database: Database, protocolType: ProtocolType) {
        self.init(collections: Self.defaultCollections(of: database), protocolType: protocolType)
    }

    /// The database that is served.
    @available(*, deprecated, message: "use the database of a collection")
    public var database: Database { servedDatabase }
}

extension MessageEndpointListener {
    /// Removes a listener.
    @available(*, deprecated, message: "use `token.remove()`")
    public func removeChangeListener(withToken token: ListenerToken) { token.remove() }
}

extension TLSIdentity {
    /// Creates an identity for a listener or for a replicator, and keeps it under a label.
    @available(*, deprecated, renamed: "createIdentity(for:attributes:expiration:issuer:label:)")
    public static func createIdentity(
        forServer isServer: Bool,
        attributes: [String: String],
        expiration: Date? = nil,
        label: String
    ) throws -> TLSIdentity {
        try createIdentity(
            for: isServer ? .serverAuth : .clientAuth,
            attributes: attributes,
            expiration: expiration,
            label: label
        )
    }
}
