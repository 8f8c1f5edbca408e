import Loveseat
import LoveseatCouchDB
import PhotoDropCore

/// CouchDB's wire of a session, for PouchDB and the original PhotoDrop. It shares the port and the password of the other one.
enum CouchDBWire {
    /// How long a connection may be idle between two requests, in seconds: idle connections keep a session from ending.
    private static let idleSeconds = 30.0
    /// The longest request, without its photos.
    private static let maximumRequestBytes = 16 << 20

    /// Creates the listener, which takes what the filter allows, and lets nobody read.
    static func listener(
        _ collection: Loveseat.Collection,
        of database: Database,
        options: ReceiverOptions,
        filter: DropFilter
    ) -> CouchDBListener {
        var configuration = CouchDBListenerConfiguration(
            databases: [DropCode.databaseName: collection],
            of: database
        )
        configuration.writeOnly = true
        configuration.origins = options.origins
        configuration.idleTimeout = idleSeconds
        configuration.maximumRequestSize = maximumRequestBytes
        // PouchDB sends photos as Base64 within a request, several in one.
        configuration.maximumInlineAttachments = options.limits.photoBytes
        configuration.maximumDocumentSize = options.limits.documentBytes
        // With a policy, nobody manages the database.
        configuration.accessPolicy = AccessPolicy { _, _, _ in .write }
        configuration.incomingFilter = { filter.couchDBRefusal($0, $1, $2) }
        return CouchDBListener(configuration)
    }
}
