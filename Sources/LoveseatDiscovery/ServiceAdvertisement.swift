import Logging
import LoveseatCore
public import LoveseatDiscoveryCore
import LoveseatIdentity
package import LoveseatModel
public import LoveseatNetwork
private import Synchronization

/// Advertises a listener on its network, so that peers find it by its name.
///
/// ```swift
/// serving.advertise = ServiceAdvertisement(type: "_myapp._tcp", name: "Ana's trips")
/// ```
///
/// The name, the database's name and a random ID of the database are sent to everybody on the network, in the TXT record; never a password.
/// A listener on a loopback address is not advertised.
public struct ServiceAdvertisement: AdvertisementMaker, Sendable {
    /// The type of service. Apps use a type of their own, of at most 15 letters, digits and hyphens.
    public var type: String
    /// The name of the service: 1 to 63 bytes. Nil, the default, means the database's name and the host's. If another service has the
    /// name, a number is added.
    public var name: String?
    /// Subtypes by which the service can be found, too; at most 8.
    public var subtypes: [String] = []
    /// More entries for the TXT record, after Loveseat's own.
    public var entries: [ServiceText.Entry] = []
    /// Whether the name is random, and the database's ID another one at each start. The default is false. Peers then cannot recognize
    /// the database, and compare all documents again.
    public var isAnonymous = false
    /// Whether peers are told that a pairing code can be used. The default is false.
    public var isPairing = false
    /// The implementation to use.
    public var method = DiscoveryMethod.automatic
    /// The names of the only interfaces to advertise on, which ``DiscoveryMethod/multicast`` honours. Nil, the default, means all.
    public var interfaces: Set<String>?

    /// Keys that must not be sent to everybody.
    private static let secretKeys: Set<String> = [
        "u", "p", "user", "username", "password", "token", "secret",
    ]

    /// Creates an advertisement.
    public init(type: String = "_loveseat._tcp", name: String? = nil) {
        self.type = type
        self.name = name
    }

    package func begin(
        for listener: AdvertisedListener,
        report: @escaping @Sendable (AdvertisementState) -> Void
    ) throws(LoveseatError) -> any RunningAdvertisement {
        let advertiser = PeerAdvertiser(self, report)
        try advertiser.start(listener)
        return advertiser
    }

    /// The service of a listener.
    package func service(of listener: AdvertisedListener) throws(LoveseatError) -> MulticastNode.Service {
        let serviceType = try ServiceType.validated(type)
        try ServiceType.validate(subtypes: subtypes)
        if !serviceType.isRegistrable {
            LogDomain.listener.log(
                .warning,
                "\(type) is advertised, but some apps find only types of 1 to 15 letters, digits and hyphens"
            )
        }
        var instance = name ?? ""
        if isAnonymous {
            instance = "Peer \(Self.randomHexadecimal(4))"
        } else if name == nil {
            instance = InstanceName.cut(
                "\(listener.ownName) on \(DeviceName.ofThisHost.prefix { $0 != "." })"
            )
        }
        guard InstanceName.isValid(instance) else {
            throw LoveseatError(
                .invalidParameter,
                "\"\(instance)\" is not a service name: use 1 to 63 bytes without control characters"
            )
        }
        return MulticastNode.Service(
            instance: instance,
            type: serviceType,
            subtypes: subtypes,
            port: listener.port,
            text: try text(of: listener).bytes,
            interface: try interface(of: listener)
        )
    }

    private func text(of listener: AdvertisedListener) throws(LoveseatError) -> ServiceText {
        func entry(_ key: String, _ value: String) -> ServiceText.Entry {
            ServiceText.Entry(key: key, value: Array(value.utf8))
        }
        if let secret = entries.first(where: { Self.secretKeys.contains($0.key.lowercased()) }) {
            throw LoveseatError(
                .invalidParameter,
                "\"\(secret.key)\" cannot be advertised, because everybody on the network reads it: secrets belong in an authenticator"
            )
        }
        var all = [entry("txtvers", "1"), entry("path", listener.databaseName)]
        all.append(entry("tls", listener.fingerprint == nil ? "0" : "1"))
        if let fingerprint = listener.fingerprint { all.append(entry("fp", String(fingerprint.prefix(32)))) }
        all.append(entry("id", isAnonymous ? Self.randomHexadecimal(32) : listener.databaseID))
        all.append(entry("v", listener.protocols.joined(separator: ",")))
        if isPairing { all.append(entry("pr", "1")) }
        return try ServiceText(all + entries)
    }

    private static func randomHexadecimal(_ count: Int) -> String {
        String((0..<count).map { _ in "0123456789abcdef".randomElement() ?? "0" })
    }

    /// The interface that the listener is bound to; nil for all.
    private func interface(of listener: AdvertisedListener) throws(LoveseatError) -> UInt32? {
        guard let name = listener.networkInterface else { return nil }
        let interfaces = HostAddresses.interfaces(all: true)
        let bytes = IPAddress.bytes(String(name.prefix { $0 != "%" }))
        let found = interfaces.first { interface in
            interface.name == name || interface.addresses.contains { $0.bytes == bytes }
        }
        guard let found else {
            throw LoveseatError(.unknownHost, "there is no network interface \"\(name)\" with an address")
        }
        return found.index
    }
}

/// Publishes one listener.
final class PeerAdvertiser: RunningAdvertisement {
    private struct State {
        var publication: Publication?
        var isWithdrawn = false
    }

    private let advertisement: ServiceAdvertisement
    private let report: @Sendable (AdvertisementState) -> Void
    private let state = Mutex(State())

    init(_ advertisement: ServiceAdvertisement, _ report: @escaping @Sendable (AdvertisementState) -> Void) {
        (self.advertisement, self.report) = (advertisement, report)
    }

    func start(_ listener: AdvertisedListener) throws(LoveseatError) {
        let service = try advertisement.service(of: listener)
        if let index = service.interface,
            HostAddresses.interfaces(all: true).first(where: { $0.index == index })?.isLoopback == true
        {
            LogDomain.listener.log(
                .notice,
                "\(listener.ownName): not advertised, because it listens on a loopback address only"
            )
            report(.failed(LoveseatError(.unsupported, "it listens on a loopback address only")))
            return
        }
        DiscoveryOrigin(method: advertisement.method, interfaces: advertisement.interfaces)
            .withProvider { [self] provider in
                state.withLock { state in
                    if state.isWithdrawn { return }
                    state.publication = provider.publish(service) { [weak self] in self?.handle($0) }
                }
            }
    }

    private func handle(_ report: PublishReport) {
        switch report {
        case .published(let instance, let host):
            self.report(.advertised(name: instance, host: host))
            LogDomain.listener.log(.info, "advertised as \"\(instance)\" (\(advertisement.type))")
        case .failed(let error):
            self.report(.failed(error))
            LogDomain.listener.log(.warning, "\(error.message)")
        }
    }

    func withdraw() async {
        let publication = state.withLock { state in
            state.isWithdrawn = true
            defer { state.publication = nil }
            return state.publication
        }
        await publication?.withdraw()
    }
}
