import Foundation
import LoveseatCore
import LoveseatIdentity
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import Testing

/// Pairing two databases by a code, and what a code does not do.
struct PairingTests {
    private let scratch: Scratch
    private let near: Database
    private let far: Database
    private let authenticator: ListenerPairingAuthenticator

    init() throws {
        scratch = try Scratch()
        near = try scratch.database("near")
        far = try scratch.database("far")
        authenticator = ListenerPairingAuthenticator(database: far)
        try far.defaultCollection().save(Document(id: "there"))
    }

    private func identity(_ name: String) throws -> TLSIdentity {
        try TLSIdentity.createIdentity(
            for: [.serverAuth, .clientAuth],
            attributes: [certAttrCommonName: name],
            label: nil
        )
    }

    private func serve(_ identity: TLSIdentity) async throws -> URLEndpointListener {
        var configuration = URLEndpointListenerConfiguration(collections: [try far.defaultCollection()])
        configuration.networkInterface = "127.0.0.1"
        configuration.handshakeSeconds = 600
        configuration.tlsIdentity = identity
        configuration.authenticator = authenticator
        let listener = URLEndpointListener(configuration)
        try await listener.start()
        return listener
    }

    private func sync(_ peer: PairedPeer, as identity: TLSIdentity) async throws -> LoveseatError? {
        var configuration = ReplicatorConfiguration(
            collections: [try near.defaultCollection()],
            target: try #require(peer.endpoint)
        )
        configuration.trust(peer, identity: identity)
        configuration.maxAttempts = 1
        let replicator = Replicator(configuration)
        replicator.start()
        return await replicator.waitUntilStopped().error
    }

    private func error(_ code: PairingCode, as identity: TLSIdentity) async -> LoveseatError.Code? {
        do throws(LoveseatError) {
            _ = try await code.pair(with: near, identity: identity)
            return nil
        } catch { return error.code }
    }

    @Test(arguments: [false, true])
    func `a code makes both sides know each other, and mutual TLS is all from then on`(
        _ usesDigits: Bool
    ) async throws {
        let (ours, theirs) = (try identity("phone"), try identity("kiosk"))
        let listener = try await serve(theirs)
        let (shown, events) = try authenticator.makeCode(for: listener)
        let code =
            usesDigits
            ? try PairingCode(digits: shown.digits ?? "", url: try #require(listener.urls?.first))
            : try PairingCode(text: shown.text)
        let peer = try await code.pair(with: near, identity: ours)
        #expect(peer.fingerprint == theirs.certs[0].fingerprint)
        // A device is known by its host's name, which decides nothing.
        #expect(peer.name == ProcessInfo.processInfo.hostName)
        #expect(!peer.isNameGiven)
        var joined: [PairedPeer] = []
        for await case .paired(let peer) in events { joined.append(peer) }
        #expect(joined.map(\.name) == [ProcessInfo.processInfo.hostName])
        #expect(joined.map(\.fingerprint) == [ours.certs[0].fingerprint])
        #expect(try near.pairedPeers() == [peer])
        #expect(try far.pairedPeers() == joined)
        #expect(try await sync(peer, as: ours) == nil)
        #expect(try near.defaultCollection().document(id: "there") != nil)
        // A peer that is known uses a new code up all the same.
        let (again, used) = try authenticator.makeCode(for: listener)
        #expect(try await again.pair(with: near, identity: ours) == peer)
        for await case .paired(let known) in used {
            #expect(known.fingerprint == ours.certs[0].fingerprint)
        }
        // Others are kept out, and so is a peer that is forgotten.
        #expect(try await sync(peer, as: try identity("stranger"))?.code == .httpAuthRequired)
        try far.removePairedPeer(fingerprint: ours.certs[0].fingerprint)
        #expect(try await sync(peer, as: ours)?.code == .httpAuthRequired)
        await listener.stop()
    }

    @Test(.timeLimit(.minutes(2)))
    func `a code that is withdrawn pairs nobody, and its events end`() async throws {
        let listener = try await serve(try identity("kiosk"))
        let (withdrawn, void) = try authenticator.makeCode(for: listener, validFor: .infinity)
        authenticator.withdrawCode()
        authenticator.withdrawCode()
        for await _ in void { Issue.record("nobody used it") }
        #expect(await error(withdrawn, as: try identity("one")) == .httpAuthRequired)
        let (next, paired) = try authenticator.makeCode(for: listener)
        #expect(await error(next, as: try identity("two")) == nil)
        for await _ in paired {}
        // A code that was used is not there any more, and those who used it are.
        authenticator.withdrawCode()
        #expect(try far.pairedPeers().count == 1)
        await listener.stop()
    }

    @Test func `a peer has an endpoint for each of its URLs`() {
        let urls = ["wss://10.0.0.1:55990/db", "wss://192.168.1.7:55990/db"]
        let peer = PairedPeer(name: "kiosk", fingerprint: "00", urls: urls)
        #expect(peer.endpoints.map(\.url.absoluteString) == urls)
        #expect(peer.endpoint?.url.absoluteString == urls[0])
        #expect(PairedPeer(name: "phone", fingerprint: "00", urls: []).endpoint == nil)
    }

    @Test func `a code is good once, for a while, and until another one`() async throws {
        let listener = try await serve(try identity("kiosk"))
        let (first, _) = try authenticator.makeCode(for: listener)
        let (second, paired) = try authenticator.makeCode(for: listener)
        #expect(await error(first, as: try identity("one")) == .httpAuthRequired)
        #expect(await error(second, as: try identity("two")) == nil)
        for await _ in paired {}
        #expect(await error(second, as: try identity("three")) == .httpAuthRequired)
        let (brief, void) = try authenticator.makeCode(for: listener, validFor: 0.05)
        for await _ in void {}
        #expect(await error(brief, as: try identity("four")) == .httpAuthRequired)
        #expect(try far.pairedPeers().count == 1)
        await listener.stop()
    }

    @Test(arguments: [false, true])
    func `a request for a database that is not served does not use up the code`(_ usesDigits: Bool)
        async throws
    {
        let listener = try await serve(try identity("kiosk"))
        let (shown, events) = try authenticator.makeCode(for: listener)
        let url = try #require(listener.urls?.first)
        let wrong = url.deletingLastPathComponent().appending(path: "fra")
        func code(_ url: URL) throws -> PairingCode {
            usesDigits
                ? try PairingCode(digits: shown.digits ?? "", url: url)
                : try PairingCode(
                    text: shown.text.replacing(
                        try #require(listener.urls?.first).absoluteString,
                        with: url.absoluteString
                    )
                )
        }
        let phone = try identity("phone")
        // More often than guesses are allowed.
        for _ in 0..<6 { #expect(await error(try code(wrong), as: phone) == .httpNotFound) }
        #expect(try far.pairedPeers().isEmpty)
        #expect(try near.pairedPeers().isEmpty)
        #expect(await error(try code(url), as: phone) == nil)
        var joined: [String] = []
        for await case .paired(let peer) in events { joined.append(peer.fingerprint) }
        #expect(joined == [phone.certs[0].fingerprint])
        await listener.stop()
    }

    @Test func `a pairing of a client that finds no free place is reported`() async throws {
        let (guest, phone, kiosk) = (try identity("guest"), try identity("phone"), try identity("kiosk"))
        var configuration = URLEndpointListenerConfiguration(collections: [try far.defaultCollection()])
        configuration.networkInterface = "127.0.0.1"
        configuration.handshakeSeconds = 600
        configuration.tlsIdentity = kiosk
        configuration.authenticator = authenticator
        configuration.maximumConnections = 1
        let listener = URLEndpointListener(configuration)
        try await listener.start()
        try far.addPairedPeer(PairedPeer(name: "guest", fingerprint: guest.certs[0].fingerprint, urls: []))
        var syncing = ReplicatorConfiguration(
            collections: [try near.defaultCollection()],
            target: URLEndpoint(try #require(listener.urls?.first))
        )
        let fingerprint = kiosk.certs[0].fingerprint
        syncing.trust(PairedPeer(name: "kiosk", fingerprint: fingerprint, urls: []), identity: guest)
        syncing.continuous = true
        let replicator = Replicator(syncing)
        replicator.start()
        for await status in replicator.statuses where status.activity == .idle { break }
        let (code, events) = try authenticator.makeCode(for: listener)
        #expect(await error(code, as: phone) == .init(10_503))
        var joined: [String] = []
        for await case .paired(let peer) in events { joined.append(peer.fingerprint) }
        #expect(joined == [phone.certs[0].fingerprint])
        replicator.stop()
        _ = await replicator.waitUntilStopped()
        await listener.stop()
    }

    @Test func `a listener in the middle cannot pass a proof on`() async throws {
        // Eve has the text of the code but not the kiosk's key: the pin keeps the phone from talking to her.
        let listener = try await serve(try identity("kiosk"))
        let (code, _) = try authenticator.makeCode(for: listener)
        let impostor = try scratch.database("impostor")
        let hers = ListenerPairingAuthenticator(database: impostor)
        var configuration = URLEndpointListenerConfiguration(collections: [try impostor.defaultCollection()])
        configuration.networkInterface = "127.0.0.1"
        configuration.handshakeSeconds = 600
        configuration.tlsIdentity = try identity("kiosk")
        configuration.authenticator = hers
        let second = URLEndpointListener(configuration)
        try await second.start()
        let kiosk = try #require(listener.urls?.first).absoluteString
        let eve = try #require(second.urls?.first).absoluteString
        let redirected = try PairingCode(text: code.text.replacing(kiosk, with: eve))
        #expect(redirected.urls.map(\.absoluteString) == [eve])
        #expect(await error(redirected, as: try identity("phone")) == .tlsCertUnknownRoot)
        #expect(try near.pairedPeers().isEmpty)
        await second.stop()
        await listener.stop()
    }

    @Test func `what is no code is refused, and so is a listener without TLS`() async throws {
        for text in [
            "", "hello", "loveseat-pair:2?u=wss://a/b&p=x&s=y", "loveseat-pair:1?u=ws://a/b&s=y",
            "loveseat-pair:1?p=\(String(repeating: "a", count: 64))&s=x",
            "loveseat-pair:1?u=wss://a&p=\(String(repeating: "a", count: 64))&s=x",
            String(repeating: "x", count: 5_000),
        ] {
            let error = #expect(throws: LoveseatError.self) { try PairingCode(text: text) }
            #expect(error?.code == .invalidParameter, "\(text.prefix(80))")
        }
        let url = try #require(URL(string: "wss://127.0.0.1:1/db"))
        for digits in ["12345", "1234567", "abcdef", ""] {
            let error = #expect(throws: LoveseatError.self) { try PairingCode(digits: digits, url: url) }
            #expect(error?.code == .invalidParameter)
        }
        #expect(try PairingCode(digits: "123 456", url: url).digits == "123456")
        var configuration = URLEndpointListenerConfiguration(collections: [try far.defaultCollection()])
        configuration.disableTLS = true
        configuration.authenticator = authenticator
        let clear = await #expect(throws: LoveseatError.self) {
            try await URLEndpointListener(configuration).start()
        }
        #expect(clear?.code == .invalidParameter)
        let idle = URLEndpointListener(configuration)
        let stopped = #expect(throws: LoveseatError.self) { try authenticator.makeCode(for: idle) }
        #expect(stopped?.code == .notOpen)
    }
}
