public import Foundation
import LoveseatIdentity

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

extension TLSIdentity {
    /// Creates an identity for a listener or for a replicator, and keeps it under a label.
    @available(*, deprecated, renamed: "createIdentity(for:attributes:expiration:issuer:label:)")
    public static func createIdentity(
        forServer isServer: Bool,
        attributes: [String: String],
        expiration: Date?,
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
