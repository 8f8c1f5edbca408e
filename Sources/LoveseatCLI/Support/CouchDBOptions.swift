import ArgumentParser
import Foundation
import Loveseat
import LoveseatCouchDB

/// The options of `serve` for CouchDB's wire.
struct CouchDBOptions: ParsableArguments {
    @Flag(
        name: .customLong("couchdb"),
        help: "Serve CouchDB, PouchDB and HTTP clients too, on the same port."
    )
    var isOn = false
    @Option(
        name: .customLong("couchdb-port"),
        help: "A port of its own for CouchDB's wire; 0 for a free one."
    )
    var port: UInt16?
    @Flag(
        name: .customLong("couchdb-create"),
        help: "Let clients of CouchDB's wire create and delete databases, which are collections here."
    )
    var creates = false
    @Option(
        name: .customLong("couchdb-min-tls"),
        help:
            "The oldest version of TLS for CouchDB's wire: 1.0, 1.1, 1.2 or 1.3. Couchbase Lite 1.x needs 1.0."
    )
    var minimumTLS = "1.2"
    @Flag(
        name: .customLong("couchdb-digest"),
        help: "With --no-tls: refuse passwords that are not hashed (Digest instead of Basic)."
    )
    var digestOnly = false
    @Option(
        name: .customLong("replicate-with"),
        help:
            "HOST or HOST:PORT with which clients of CouchDB's wire may let this database replicate (_replicate). Repeatable."
    )
    var replicationHosts: [String] = []
    @Option(
        name: .customLong("replicate-pin"),
        help: "The SHA-256 fingerprint of the certificate that those hosts must show."
    )
    var replicationPin: String?
    @Option(
        name: .customLong("replicate-ca"),
        help: "A PEM file with the authorities to trust for those hosts instead of the system's.",
        completion: .file()
    )
    var replicationCA: String?

    private static let versions: [String: ListenerTLSVersion] = [
        "1.0": .tlsv10, "1.1": .tlsv11, "1.2": .tlsv12, "1.3": .tlsv13,
    ]

    func validate() throws {
        let isPlain =
            port == nil && !creates && minimumTLS == "1.2" && !digestOnly
            && replicationHosts.isEmpty
        guard isOn || isPlain else {
            throw ValidationError(
                "--couchdb-port, --couchdb-create, --couchdb-min-tls, --couchdb-digest and --replicate-with need --couchdb."
            )
        }
        guard !replicationHosts.isEmpty || (replicationPin == nil && replicationCA == nil) else {
            throw ValidationError("--replicate-pin and --replicate-ca need --replicate-with.")
        }
        guard replicationPin.map({ TLSCertificate.pin(reading: $0) != nil }) ?? true else {
            throw ValidationError("--replicate-pin must be a SHA-256 fingerprint: 64 hexadecimal digits.")
        }
        guard replicationPin == nil || replicationCA == nil else {
            throw ValidationError("Use one of --replicate-pin and --replicate-ca.")
        }
        if let text = replicationHosts.first(where: { Self.host($0) == nil }) {
            throw ValidationError("--replicate-with \(text): use HOST or HOST:PORT.")
        }
        guard Self.versions[minimumTLS] != nil else {
            throw ValidationError("--couchdb-min-tls must be 1.0, 1.1, 1.2 or 1.3.")
        }
        guard minimumTLS == "1.2" || port != nil else {
            throw ValidationError("--couchdb-min-tls needs --couchdb-port: one port has one TLS version.")
        }
    }

    /// A host and port as a URL; nil if the text is anything else.
    private static func host(_ text: String) -> URL? {
        guard let url = URL(string: "http://\(text)", encodingInvalidCharacters: false),
            !(url.host() ?? "").isEmpty, url.path().isEmpty, url.user() == nil, url.query() == nil,
            url.fragment() == nil, url.validPort != nil
        else { return nil }
        return url
    }

    /// Whether CouchDB's wire has a port of its own.
    var hasOwnPort: Bool { isOn && port != nil }

    /// The listener beside the one for Couchbase's protocol, with the same identity and password; nil if it is not asked for.
    func listener(
        beside other: URLEndpointListenerConfiguration,
        of database: Database,
        named name: String?,
        chosen: [CollectionName]
    ) throws -> CouchDBListener? {
        guard isOn else { return nil }
        var configuration = CouchDBListenerConfiguration(database: database)
        if !chosen.isEmpty || name != nil {
            let base = name ?? database.name
            let names = try database.collections(named: chosen).map { collection in
                // One that a client of CouchDB's wire made may have a name with characters that only the wire allows.
                let decoded = collection.name.contains("%") ? collection.name.removingPercentEncoding : nil
                let name = decoded ?? "\(base).\(collection.fullName)"
                return (collection.fullName == "_default._default" ? base : name, collection)
            }
            configuration = CouchDBListenerConfiguration(
                databases: Dictionary(names) { first, _ in first },
                of: database
            )
        }
        configuration.port = port ?? 0
        configuration.networkInterface = other.networkInterface
        configuration.accessPolicy = other.accessPolicy
        configuration.readOnly = other.readOnly
        configuration.writeOnly = other.writeOnly
        if let version = Self.versions[minimumTLS] { configuration.minimumTLSVersion = version }
        configuration.allowsBasicWithoutTLS = !digestOnly
        configuration.disableTLS = other.disableTLS
        configuration.tlsIdentity = other.tlsIdentity
        configuration.authenticator = other.authenticator
        configuration.advertise = other.advertise
        configuration.origins = other.origins
        configuration.hostNames = other.hostNames
        configuration.allowsDatabaseCreation = creates
        let hosts = replicationHosts.compactMap { Self.host($0) }
        configuration.allowsReplicationWith = { url in
            hosts.contains { host in
                host.host()?.lowercased() == url.host()?.lowercased()
                    && (host.port == nil || host.validPort == url.validPort)
            }
        }
        let authorities = try replicationCA.map(Identities.certificates)
        configuration.prepareReplication = { [replicationPin] _, settings in
            settings.pinnedServerFingerprint = replicationPin
            settings.rootCertificates = authorities
        }
        return CouchDBListener(configuration)
    }
}
