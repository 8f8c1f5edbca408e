import Foundation
import LoveseatCore
import LoveseatDiscovery
import LoveseatDiscoveryCore
import LoveseatModel
import LoveseatNetwork
import LoveseatReplication
import LoveseatTesting
import Testing

/// What is advertised, and what is connected to. Nothing is sent to a network here.
struct AdvertisementTests {
    private static let fingerprint = String(repeating: "ab", count: 32)
    private static let id = String(repeating: "0f", count: 16)

    private func listener(interface: String? = nil) -> AdvertisedListener {
        AdvertisedListener(
            databaseName: "trips",
            ownName: "trips",
            databaseID: Self.id,
            port: 4_984,
            fingerprint: Self.fingerprint,
            protocols: ["b2", "b3"],
            networkInterface: interface
        )
    }

    private func code(_ body: () throws -> Void) -> LoveseatError.Code? {
        do { try body() } catch { return (error as? LoveseatError)?.code }
        return nil
    }

    @Test
    func
        `a listener is advertised with its path, ID, protocols and half of its fingerprint, and nothing else`()
        throws
    {
        let service = try ServiceAdvertisement(name: "Ana's desk").service(of: listener())
        let text = ServiceText(bytes: service.text)
        #expect(text.entries.map(\.key) == ["txtvers", "path", "tls", "fp", "id", "v"])
        #expect(text["path"] == "trips")
        #expect(text["tls"] == "1")
        #expect(text["id"] == Self.id)
        #expect(text["v"] == "b2,b3")
        #expect(text["fp"] == String(Self.fingerprint.prefix(32)))
        #expect(service.instance == "Ana's desk")
        #expect(service.port == 4_984)
        #expect(service.interface == nil)
        var pairing = ServiceAdvertisement()
        pairing.isPairing = true
        #expect(ServiceText(bytes: try pairing.service(of: listener()).text)["pr"] == "1")
        #expect(try pairing.service(of: listener()).instance.hasPrefix("trips on "))
    }

    @Test func `secrets, overlong entries, and names and types that are not valid are refused`() {
        for key in ["u", "p", "Password", "token"] {
            var advertisement = ServiceAdvertisement()
            advertisement.entries = [.init(key: key, value: [1])]
            #expect(code { _ = try advertisement.service(of: listener()) } == .invalidParameter, "\(key)")
        }
        var long = ServiceAdvertisement()
        long.entries = [.init(key: "a", value: [UInt8](repeating: 1, count: 254))]
        #expect(code { _ = try long.service(of: listener()) } == .invalidParameter)
        for type in ["http", "_a._udp", ""] {
            #expect(
                code { _ = try ServiceAdvertisement(type: type).service(of: listener()) } == .invalidParameter
            )
            #expect(code { _ = try PeerBrowser(type: type) } == .invalidParameter)
        }
        for name in ["", "a\u{7}", String(repeating: "a", count: 64)] {
            let advertisement = ServiceAdvertisement(name: name)
            #expect(code { _ = try advertisement.service(of: listener()) } == .invalidParameter)
        }
        #expect(
            code { _ = try ServiceAdvertisement().service(of: listener(interface: "none0")) } == .unknownHost
        )
    }

    @Test func `an app's entries follow Loveseat's, and do not replace them`() throws {
        var advertisement = ServiceAdvertisement()
        advertisement.entries = [
            .init(key: "PATH", value: Array("other".utf8)), .init(key: "room", value: Array("4".utf8)),
        ]
        let text = ServiceText(bytes: try advertisement.service(of: listener()).text)
        #expect(text["path"] == "trips")
        #expect(text["room"] == "4")
    }

    @Test func `an anonymous advertisement has another name and ID each time`() throws {
        var advertisement = ServiceAdvertisement(name: "Ana's desk")
        advertisement.isAnonymous = true
        let (first, second) = (
            try advertisement.service(of: listener()), try advertisement.service(of: listener())
        )
        #expect(!first.instance.contains("Ana"))
        let ids = [first, second].map { ServiceText(bytes: $0.text)["id"] }
        #expect(ids[0] != Self.id)
        #expect(ids[0] != ids[1])
    }

    @Test func `a listener on a loopback address has no advertised name`() async throws {
        let folder = try Scratch()
        let database = try Database(name: "trips", config: DatabaseConfiguration(directory: folder.path))
        var configuration = URLEndpointListenerConfiguration(collections: [try database.defaultCollection()])
        configuration.networkInterface = "127.0.0.1"
        configuration.disableTLS = true
        configuration.advertise = ServiceAdvertisement(name: "trips")
        let listener = URLEndpointListener(configuration)
        try await listener.start()
        #expect(listener.urls?.count == 1)
        #expect(listener.advertisedName == nil)
        await listener.stop()
        struct Foreign: ListenerAdvertisement {}
        configuration.advertise = Foreign()
        let other = URLEndpointListener(configuration)
        let error = await #expect(throws: LoveseatError.self) { try await other.start() }
        #expect(error?.code == .invalidParameter)
        #expect(other.port == nil)
        try await database.close()
    }

    @Test func `a service without a pin is not connected to`() async throws {
        var options = ConnectionOptions()
        let endpoint = ServiceEndpoint(name: "trips", method: .multicast, interfaces: ["none0"])
        for selfSigned in [false, true] {
            options.acceptsOnlySelfSigned = selfSigned
            let error = await #expect(throws: LoveseatError.self) { try await endpoint.connect(options) }
            #expect(error?.code == .tlsCertUnknownRoot)
        }
        options.acceptsOnlySelfSigned = false
        do {
            _ = try await endpoint.connect(options)
            Issue.record("it connected")
        } catch let error as LoveseatError { #expect(error.code == .tlsCertUnknownRoot) }
    }

    @Test func `a service that is not there is searched for as long as the timeout`() async throws {
        var options = ConnectionOptions()
        options.pinnedServerFingerprint = Self.fingerprint
        for title in [true, false] {
            var endpoint =
                title
                ? ServiceEndpoint(name: "trips", method: .multicast, interfaces: ["none0"])
                : ServiceEndpoint(peerID: Self.id, method: .multicast, interfaces: ["none0"])
            endpoint.timeout = .milliseconds(200)
            let start = ContinuousClock.now
            do {
                _ = try await endpoint.connect(options)
                Issue.record("it connected")
            } catch let error as LoveseatError {
                #expect(error.code == .timeout)
                #expect(error.isNetworkDependent)
            }
            #expect(ContinuousClock.now - start >= .milliseconds(200))
        }
    }

    @Test func `checkpoints belong to the ID of a peer, or to its name, and to the database`() {
        #expect(ServiceEndpoint(peerID: Self.id.uppercased()).remoteName == "peer:\(Self.id)")
        let endpoint = ServiceEndpoint(name: "Ana's trips", type: "_MyApp._tcp")
        #expect(endpoint.remoteName == "dns-sd:Ana's trips._myapp._tcp")
        var named = endpoint
        named.databaseName = "notes"
        #expect(named.remoteName != endpoint.remoteName)
        #expect(code { try ServiceEndpoint(name: "").validate() } == .invalidParameter)
    }

    @Test func `a browser ends with its task, and without interfaces says that nothing can be found`()
        async throws
    {
        let browser = try PeerBrowser(method: .multicast, interfaces: ["none0"])
        #expect(await browser.problem?.code == .unsupported)
        #expect(browser.peers.isEmpty)
        let task = Task { for await _ in browser { Issue.record("a peer") } }
        task.cancel()
        await task.value
    }

    @Test func `an address becomes a URL with its scope, and without a scheme's own port`() throws {
        let text = ServiceText(bytes: Array("\u{B}path=/trips".utf8))
        let local = PeerAddress(address: "fe80::1%lv1", port: 59_840, host: "a.local", text: text)
        #expect(local.url(scheme: "wss")?.absoluteString == "wss://[fe80::1%25lv1]:59840/trips")
        #expect(local.url(scheme: "wss")?.host(percentEncoded: false) == "fe80::1%lv1")
        let plain = PeerAddress(address: "10.0.0.1", port: 80, host: "a.local", text: ServiceText(bytes: []))
        #expect(plain.url(scheme: "http")?.absoluteString == "http://10.0.0.1/")
    }
}
