import ArgumentParser
import Loveseat
import LoveseatCouchDB

/// The options of `serve` for CouchDB's wire.
struct CouchDBOptions: ParsableArguments {
    @Flag(
        name: .customLong("couchdb"),
        help: "Serve CouchDB, PouchDB and HTTP clients too, on a port of its own."
    )
    var isOn = false
    @Option(name: .customLong("couchdb-port"), help: "The port for CouchDB's wire; 0 for a free one.")
    var port: UInt16 = 0
    @Flag(
        name: .customLong("couchdb-create"),
        help: "Let clients of CouchDB's wire create and delete databases, which are collections here."
    )
    var creates = false
    @Option(
        name: .customLong("origin"),
        help:
            "A web origin whose pages may use CouchDB's wire, such as https://example.com; * for all. Repeatable."
    )
    var origins: [String] = []

    func validate() throws {
        guard isOn || (port == 0 && !creates && origins.isEmpty) else {
            throw ValidationError("--couchdb-port, --couchdb-create and --origin need --couchdb.")
        }
    }

    /// The listener beside the one for Couchbase's protocol, with the same identity and password; nil if it is not asked for.
    func listener(
        beside other: URLEndpointListenerConfiguration,
        of database: Database,
        chosen: [CollectionName]
    ) throws -> CouchDBListener? {
        guard isOn else { return nil }
        var configuration = CouchDBListenerConfiguration(database: database)
        if !chosen.isEmpty {
            let names = try database.collections(named: chosen).map { collection in
                (
                    collection.fullName == "_default._default"
                        ? database.name : "\(database.name).\(collection.fullName)", collection
                )
            }
            configuration = CouchDBListenerConfiguration(
                databases: Dictionary(names) { first, _ in first },
                of: database
            )
        }
        guard other.accessPolicy == nil else {
            throw ValidationError("--access does not work with --couchdb yet.")
        }
        configuration.port = port
        configuration.networkInterface = other.networkInterface
        configuration.readOnly = other.readOnly
        configuration.disableTLS = other.disableTLS
        configuration.tlsIdentity = other.tlsIdentity
        configuration.authenticator = other.authenticator
        configuration.advertise = other.advertise
        configuration.origins = origins
        configuration.allowsDatabaseCreation = creates
        return CouchDBListener(configuration)
    }
}
