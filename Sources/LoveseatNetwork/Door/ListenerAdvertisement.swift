package import LoveseatModel

/// How a listener makes itself known to other hosts of its network: `ServiceAdvertisement`, of the product LoveseatDiscovery.
///
/// Apps do not conform to this protocol: a listener that is given any other type does not start.
public protocol ListenerAdvertisement: Sendable {}

/// An advertisement that a listener can begin.
package protocol AdvertisementMaker: ListenerAdvertisement {
    /// Begins to advertise a listener that has its port.
    ///
    /// - Throws: ``LoveseatError``: `invalidParameter` for a setting that cannot work.
    func begin(for listener: AdvertisedListener) throws(LoveseatError) -> any RunningAdvertisement
}

/// What others may know of a listener.
package struct AdvertisedListener: Sendable {
    /// The path of its URLs.
    package var databaseName: String
    /// The name that the database has here.
    package var ownName: String
    /// A random ID that belongs to the database, 32 hexadecimal digits.
    package var databaseID: String
    package var port: UInt16
    /// The SHA-256 fingerprint of its certificate; nil without TLS.
    package var fingerprint: String?
    /// The protocols, such as `b2`, `b3` for BLIP and `c` for CouchDB's.
    package var protocols: [String]
    package var networkInterface: String?

    package init(
        databaseName: String,
        ownName: String,
        databaseID: String,
        port: UInt16,
        fingerprint: String?,
        protocols: [String],
        networkInterface: String?
    ) {
        self.databaseName = databaseName
        self.ownName = ownName
        self.databaseID = databaseID
        self.port = port
        self.fingerprint = fingerprint
        self.protocols = protocols
        self.networkInterface = networkInterface
    }
}

/// An advertisement that goes on until it is withdrawn.
package protocol RunningAdvertisement: Sendable {
    /// The instance name under which the service is published; nil until it is.
    var publishedName: String? { get }
    /// The host name of the service, such as `example.local`; nil until it is published.
    var hostName: String? { get }
    /// Returns when others were told.
    func withdraw() async
}

/// Begins the advertisement of a configuration, if there is one.
package func beginAdvertisement(
    _ advertisement: (any ListenerAdvertisement)?,
    _ listener: () throws -> AdvertisedListener
) throws -> (any RunningAdvertisement)? {
    guard let advertisement else { return nil }
    guard let maker = advertisement as? any AdvertisementMaker else {
        throw LoveseatError(
            .invalidParameter,
            "\(type(of: advertisement)) cannot advertise a listener: use ServiceAdvertisement"
        )
    }
    return try maker.begin(for: try listener())
}
