import Foundation
import LoveseatCore
import LoveseatIdentity
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import NIOConcurrencyHelpers
import Testing

// Group in ./test: programs
/// Whom a replicator and a listener trust when the other side has read the specification with bad intentions.
struct TrustTests {
    private let scratch: Scratch
    private let near: Database
    private let far: Database

    init() throws {
        scratch = try Scratch()
        near = try scratch.database("near")
        far = try scratch.database("far")
        try near.defaultCollection().save(Document(id: "secret"))
    }

    private func identity(
        _ name: String,
        _ usages: KeyUsages = [.serverAuth, .clientAuth],
        hosts: String? = nil,
        expiration: Date? = nil,
        issuer: TLSIdentity? = nil
    ) throws -> TLSIdentity {
        var attributes = [certAttrCommonName: name]
        attributes[certAttrHostname] = hosts
        return try TLSIdentity.createIdentity(
            for: usages,
            attributes: attributes,
            expiration: expiration,
            issuer: issuer,
            label: nil
        )
    }

    /// An identity that shows other certificates behind its own.
    private func identity(_ own: TLSIdentity, appending others: [TLSCertificate]) throws -> TLSIdentity {
        try TLSIdentity.importIdentity(
            withCertificates: ((own.certs.first.map { [$0] } ?? []) + others).map(\.pem).joined(),
            privateKey: try own.pem(passphrase: nil),
            label: nil
        )
    }

    private func serve(
        _ identity: TLSIdentity,
        _ authenticator: (any ListenerAuthenticator)? = nil
    ) async throws -> URLEndpointListener {
        var configuration = URLEndpointListenerConfiguration(collections: [try far.defaultCollection()])
        configuration.networkInterface = "127.0.0.1"
        configuration.handshakeSeconds = 600
        configuration.tlsIdentity = identity
        configuration.authenticator = authenticator
        let listener = URLEndpointListener(configuration)
        try await listener.start()
        return listener
    }

    private func sync(
        _ listener: URLEndpointListener,
        host: String = "127.0.0.1",
        _ change: (inout ReplicatorConfiguration) -> Void
    ) async throws -> LoveseatError.Code? {
        try await error(port: Int(listener.port ?? 0), host: host, change)?.code
    }

    /// Syncs with a server on this host.
    private func error(
        port: Int,
        host: String = "127.0.0.1",
        _ change: (inout ReplicatorConfiguration) -> Void
    ) async throws -> LoveseatError? {
        let url = try #require(URL(string: "wss://\(host):\(port)/far"))
        var configuration = ReplicatorConfiguration(
            collections: [try near.defaultCollection()],
            target: URLEndpoint(url)
        )
        configuration.maxAttempts = 1
        change(&configuration)
        let replicator = Replicator(configuration)
        replicator.start()
        return await replicator.waitUntilStopped().error
    }

    // MARK: Names

    @Test func `a certificate is for its alternative names, and not for its common name`() async throws {
        let authority = try identity("CA", .certificateAuthority)
        for (name, hosts, host, isRight) in [
            ("localhost", nil, "localhost", false), ("127.0.0.1", nil, "127.0.0.1", false),
            ("*", nil, "localhost", false), ("localhost", "other.example", "localhost", false),
            ("other.example", "localhost", "localhost", true),
            // Neither is what the authority itself trusts.
            ("localhost", "other.example, localhost", "localhost", true),
        ] as [(String, String?, String, Bool)] {
            let leaf = try identity(name, hosts: hosts, issuer: authority)
            let listener = try await serve(leaf)
            let code = try await sync(listener, host: host) { $0.rootCertificates = authority.certs }
            #expect(code == (isRight ? nil : .tlsCertUntrusted), "\(name), \(hosts ?? "-"), \(host)")
            // A certificate that is trusted itself is for its names, too.
            let itself = try await sync(listener, host: host) {
                $0.rootCertificates = Array(leaf.certs.prefix(1))
            }
            #expect(itself == (isRight ? nil : .tlsCertUntrusted), "\(name), \(hosts ?? "-"), \(host)")
            await listener.stop()
        }
    }

    // MARK: Purposes

    @Test func `a certificate for clients is not a server's, unless it is itself pinned`() async throws {
        let authority = try identity("CA", .certificateAuthority)
        let root = try #require(authority.certs.first)
        for (usages, isRight) in [
            (.clientAuth, false), (.serverAuth, true), ([.serverAuth, .clientAuth], true),
        ] as [(KeyUsages, Bool)] {
            let device = try identity("kiosk", usages, hosts: "localhost", issuer: authority)
            let own = try #require(device.certs.first)
            let listener = try await serve(device)
            for roots in [[root], [own]] {
                let code = try await sync(listener, host: "localhost") { $0.rootCertificates = roots }
                #expect(code == (isRight ? nil : .tlsCertUntrusted), "\(usages)")
            }
            let issued = try await sync(listener) { $0.pinnedServerCertificate = root }
            #expect(issued == (isRight ? nil : .tlsCertUnknownRoot), "\(usages)")
            #expect(try await sync(listener) { $0.pinnedServerCertificate = own } == nil, "\(usages)")
            await listener.stop()
        }
    }

    @Test func `a certificate for servers is not a client's, unless it is itself trusted`() async throws {
        let authority = try identity("CA", .certificateAuthority)
        for (usages, isRight) in [
            (.clientAuth, true), (.serverAuth, false), ([.serverAuth, .clientAuth], true),
        ] as [(KeyUsages, Bool)] {
            let client = try identity("ana", usages, issuer: authority)
            for (roots, isAccepted) in [(authority.certs, isRight), (Array(client.certs.prefix(1)), true)] {
                let listener = try await serve(
                    try identity("kiosk"),
                    ListenerCertificateAuthenticator(rootCertificates: roots)
                )
                let code = try await sync(listener) {
                    $0.acceptOnlySelfSignedServerCertificate = true
                    $0.authenticator = ClientCertificateAuthenticator(identity: client)
                }
                #expect(code == (isAccepted ? nil : .tlsClientCertRejected), "\(usages)")
                await listener.stop()
            }
        }
    }

    // MARK: Pins

    @Test func `a pinned certificate that an attacker appends to their own chain opens nothing`() async throws
    {
        let (right, eve) = (try identity("kiosk"), try identity("kiosk"))
        let pinned = try #require(right.certs.first)
        let listener = try await serve(try identity(eve, appending: [pinned]))
        #expect(try await sync(listener) { $0.pinnedServerCertificate = pinned } == .tlsCertUnknownRoot)
        #expect(
            try await sync(listener) { $0.pinnedServerFingerprint = pinned.fingerprint }
                == .tlsCertUnknownRoot
        )
        let url = try #require(listener.urls?.first)
        let peer = PairedPeer(name: "kiosk", fingerprint: pinned.fingerprint, urls: [url.absoluteString])
        #expect(try await sync(listener) { $0.trust(peer, identity: eve) } == .tlsCertUnknownRoot)
        #expect(try far.defaultCollection().count == 0)
        await listener.stop()
    }

    @Test func `a scanned code is not used with an attacker who appends the pinned certificate`() async throws
    {
        let (right, eve) = (try identity("kiosk"), try identity("kiosk"))
        let pairing = ListenerPairingAuthenticator(database: far)
        let listener = try await serve(right, pairing)
        let (code, _) = try pairing.makeCode(for: listener)
        let hers = try await serve(try identity(eve, appending: right.certs), pairing)
        let text = code.text.replacing(":\(listener.port ?? 0)/", with: ":\(hers.port ?? 0)/")
        #expect(text != code.text)
        let error = await #expect(throws: LoveseatError.self) {
            try await PairingCode(text: text).pair(with: near, identity: eve)
        }
        #expect(error?.code == .tlsCertUnknownRoot)
        #expect(try near.pairedPeers().isEmpty)
        #expect(try far.pairedPeers().isEmpty)
        await hers.stop()
        await listener.stop()
    }

    @Test func `a pinned authority vouches for what it signed, whether or not it is sent`() async throws {
        let authority = try identity("CA", .certificateAuthority)
        let root = try #require(authority.certs.first)
        let middle = try identity("Middle", .certificateAuthority, issuer: authority)
        let leaf = try identity("elsewhere", issuer: middle)
        let whole = try await serve(leaf)
        #expect(try await sync(whole) { $0.pinnedServerCertificate = root } == nil)
        #expect(try await sync(whole) { $0.pinnedServerFingerprint = root.fingerprint } == nil)
        await whole.stop()
        let withoutRoot = try await serve(try identity(leaf, appending: Array(middle.certs.prefix(1))))
        #expect(try await sync(withoutRoot) { $0.pinnedServerCertificate = root } == nil)
        await withoutRoot.stop()
    }

    @Test func `a pinned certificate that is not an authority vouches for nobody`() async throws {
        let device = try identity("kiosk")
        let issued = try identity("eve", issuer: device)
        let listener = try await serve(issued)
        let pinned = try #require(device.certs.first)
        #expect(try await sync(listener) { $0.pinnedServerCertificate = pinned } == .tlsCertUnknownRoot)
        await listener.stop()
    }

    @Test func `an authority of the same name and another key is not the pinned one`() async throws {
        let (right, wrong) = (
            try identity("CA", .certificateAuthority), try identity("CA", .certificateAuthority)
        )
        let leaf = try identity("kiosk", issuer: wrong)
        let root = try #require(right.certs.first)
        let listener = try await serve(try identity(leaf, appending: [root]))
        #expect(
            try await sync(listener) { $0.pinnedServerFingerprint = root.fingerprint } == .tlsCertUnknownRoot
        )
        #expect(try await sync(listener) { $0.pinnedServerCertificate = root } == .tlsCertUnknownRoot)
        await listener.stop()
    }

    // MARK: Certificates that cannot be read

    /// The certificate of an identity with an extension twice: BoringSSL reads it, and X509 does not.
    private func unreadable(_ identity: TLSIdentity) throws -> TLSCertificate {
        // The subject's key identifier becomes a second one of the issuer's.
        let (subject, issuer): ([UInt8], [UInt8]) = ([6, 3, 0x55, 0x1D, 0x0E], [6, 3, 0x55, 0x1D, 0x23])
        let bytes = try #require(identity.certs.first).derBytes.replacing(subject, with: issuer)
        let error = #expect(throws: LoveseatError.self) { try TLSCertificate(der: bytes) }
        #expect(error?.code == .crypto)
        return TLSCertificate(checked: bytes)
    }

    @Test func `a server whose own certificate cannot be read is not taken for another that it shows`()
        async throws
    {
        let (right, eve) = (try identity("kiosk"), try identity("kiosk"))
        let pinned = try #require(right.certs.first)
        let server = try await HostileTLSServer(
            eve,
            showing: [try unreadable(eve), pinned],
            .answers { _ in "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" }
        )
        let peer = PairedPeer(name: "kiosk", fingerprint: pinned.fingerprint, urls: [])
        for change in [
            { $0.pinnedServerCertificate = pinned }, { $0.pinnedServerFingerprint = pinned.fingerprint },
            { $0.trust(peer, identity: right) }, { $0.acceptOnlySelfSignedServerCertificate = true },
            { $0.rootCertificates = [pinned] },
        ] as [(inout ReplicatorConfiguration) -> Void] {
            let failure = try await error(port: server.port, change)
            #expect(failure?.code == .tlsHandshakeFailed)
            #expect(failure?.message.contains("no certificate that can be read") == true)
        }
        #expect(server.heard.withLockedValue { $0 } == "")
    }

    @Test func `a client whose own certificate cannot be read is not taken for another that it shows`()
        async throws
    {
        let (ana, eve) = (try identity("ana"), try identity("ana"))
        let known = try #require(ana.certs.first)
        try far.addPairedPeer(PairedPeer(name: "ana", fingerprint: known.fingerprint, urls: []))
        let behind = "\(scratch.path)/behind.pem"
        try known.pem.write(toFile: behind, atomically: true, encoding: .utf8)
        let hers = try unreadable(eve).pem + eve.pem(passphrase: nil)
        for (authenticator, answer) in [
            (ListenerPairingAuthenticator(database: far), "HTTP/1.1 401"),
            (ListenerCertificateAuthenticator(rootCertificates: [known]), ""),
            (ListenerCertificateAuthenticator { $0.first == known }, ""),
        ] as [(any ListenerAuthenticator, String)] {
            let listener = try await serve(try identity("kiosk"), authenticator)
            let whole = try exchange(listener, ana, ["-cert_chain", behind])
            #expect(whole.hasPrefix("HTTP/1.1 404"))
            let heard = try exchange(listener, pem: hers, ["-cert_chain", behind])
            #expect(answer.isEmpty ? heard.isEmpty : heard.hasPrefix(answer))
            await listener.stop()
        }
    }

    // MARK: Names

    @Test(arguments: [("*", false), ("*.localhost", false), ("local*", false), ("localhost", true)])
    func `a wildcard stands for one label below a domain, and never for a whole host`(
        _ names: String,
        _ isGood: Bool
    ) async throws {
        let authority = try identity("CA", .certificateAuthority)
        let listener = try await serve(try identity("x", hosts: names, issuer: authority))
        #expect(
            try await sync(listener, host: "localhost") { $0.rootCertificates = authority.certs }
                == (isGood ? nil : .tlsCertUntrusted)
        )
        #expect(try await sync(listener) { $0.rootCertificates = authority.certs } == .tlsCertUntrusted)
        await listener.stop()
    }

    // MARK: Resumed sessions

    /// Speaks TLS through `openssl s_client`, which resumes sessions; returns what the listener says.
    private func exchange(_ listener: URLEndpointListener, _ identity: TLSIdentity, _ arguments: [String])
        throws -> String
    {
        try exchange(listener, pem: identity.pem(passphrase: nil), arguments)
    }

    /// `text`: the certificate to show, and its key.
    private func exchange(_ listener: URLEndpointListener, pem text: String, _ arguments: [String]) throws
        -> String
    {
        let pem = "\(scratch.path)/client.pem"
        try text.write(toFile: pem, atomically: true, encoding: .utf8)
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments =
            ["openssl", "s_client", "-connect", "127.0.0.1:\(listener.port ?? 0)", "-cert", pem, "-key", pem]
            + ["-quiet", "-ign_eof"] + arguments
        let (input, output) = (Pipe(), Pipe())
        process.standardInput = input
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try Lifeline.run(process)
        input.fileHandleForWriting.write(Data("GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
        let answer = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return String(decoding: answer, as: UTF8.self)
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func `a resumed session does not spare a client the authenticator`(_ version: String) async throws {
        let isForgotten = NIOLockedValueBox(false)
        let asked = NIOLockedValueBox(0)
        let listener = try await serve(
            try identity("kiosk"),
            ListenerCertificateAuthenticator { _ in
                asked.withLockedValue { $0 += 1 }
                return !isForgotten.withLockedValue { $0 }
            }
        )
        let (client, session) = (try identity("ana"), "\(scratch.path)/session\(version)")
        let first = try exchange(listener, client, [version, "-sess_out", session])
        #expect(first.hasPrefix("HTTP/1.1 404"))
        try #require(FileManager.default.fileExists(atPath: session))
        isForgotten.withLockedValue { $0 = true }
        #expect(try exchange(listener, client, [version, "-sess_in", session]) == "")
        #expect(asked.withLockedValue { $0 } == 2)
        await listener.stop()
    }

    @Test func `a paired peer that is forgotten is refused with a session that it had`() async throws {
        let client = try identity("ana")
        let fingerprint = try #require(client.certs.first?.fingerprint)
        try far.addPairedPeer(PairedPeer(name: "ana", fingerprint: fingerprint, urls: []))
        let listener = try await serve(
            try identity("kiosk"),
            ListenerPairingAuthenticator(database: far)
        )
        let session = "\(scratch.path)/session"
        #expect(try exchange(listener, client, ["-sess_out", session]).hasPrefix("HTTP/1.1 404"))
        // The certificate is known in the second connection too, which only a whole handshake shows.
        #expect(try exchange(listener, client, ["-sess_in", session]).hasPrefix("HTTP/1.1 404"))
        try far.removePairedPeer(fingerprint: fingerprint)
        #expect(try exchange(listener, client, ["-sess_in", session]).hasPrefix("HTTP/1.1 401"))
        await listener.stop()
    }
}
