public import Foundation
import LoveseatIdentity
public import LoveseatNetwork

extension URLEndpointListenerConfiguration {
    /// Creates a configuration that serves the default collection of a database.
    @available(*, deprecated, message: "use init(collections:)")
    public init(database: Database) {
        do { self.init(collections: [try database.defaultCollection()]) } catch {
            programmerError("a listener needs an open database: \(error.localizedDescription)")
        }
    }

    /// The database that is served.
    @available(*, deprecated, message: "use the database of a collection")
    public var database: Database {
        guard let database = collections.first?.database else {
            programmerError("a listener serves at least one collection")
        }
        return database
    }
}

extension MessageEndpointListenerConfiguration {
    /// Creates a configuration that serves the default collection of a database.
    @available(*, deprecated, message: "use init(collections:protocolType:)")
    public init(database: Database, protocolType: ProtocolType) {
        do { self.init(collections: [try database.defaultCollection()], protocolType: protocolType) } catch {
            programmerError("a listener needs an open database: \(error.localizedDescription)")
        }
    }

    /// The database that is served.
    @available(*, deprecated, message: "use the database of a collection")
    public var database: Database {
        guard let database = collections.first?.database else {
            programmerError("a listener serves at least one collection")
        }
        return database
    }
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
