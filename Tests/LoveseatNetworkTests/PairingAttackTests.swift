import Crypto
import Foundation
import LoveseatCore
import LoveseatIdentity
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import NIOConcurrencyHelpers
import Testing

/// Pairing with somebody who does not know the code: a server that says yes, a man in the middle, guessing, and searching.
struct PairingAttackTests {
    private let scratch: Scratch
    private let near: Database
    private let far: Database
    private let authenticator: ListenerPairingAuthenticator

    init() throws {
        scratch = try Scratch()
        near = try scratch.database("near")
        far = try scratch.database("far")
        authenticator = ListenerPairingAuthenticator(database: far)
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

    private func pair(_ code: PairingCode, as identity: TLSIdentity) async -> LoveseatError.Code? {
        do throws(LoveseatError) {
            _ = try await code.pair(with: near, identity: identity)
            return nil
        } catch { return error.code }
    }

    private func code(_ digits: String?, port: Int) throws -> PairingCode {
        try PairingCode(
            digits: digits ?? "",
            url: try #require(URL(string: "wss://127.0.0.1:\(port)/far"))
        )
    }

    private func otherDigits(than digits: String?) -> String { digits == "000000" ? "111111" : "000000" }

    /// A 101 that is right in every way.
    private static func welcome(_ request: String) -> String {
        let key = request.split(separator: "\r\n").first { $0.hasPrefix("Sec-WebSocket-Key: ") }?.dropFirst(
            19
        )
        return """
            HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
            Sec-WebSocket-Protocol: BLIP_3+CBMobile_3\r\n\
            Sec-WebSocket-Accept: \(UpgradeHeaders.accept(key: String(key ?? "")))\r\n\r\n
            """
    }

    @Test(arguments: [false, true])
    func `a server that says yes to everything is not paired with`(_ usesDigits: Bool) async throws {
        let eve = try identity("kiosk")
        let zeros = String(repeating: "0", count: 64)
        // A point that is as good as any.
        let share = "09" + zeros.dropFirst(2)
        let answers: [@Sendable (String) -> String] = [
            Self.welcome,
            // It pretends to have proved itself.
            {
                $0.contains("proof=")
                    ? Self.welcome($0)
                    : "HTTP/1.1 401 No\r\nWWW-Authenticate: LoveseatPair proof=\"\(zeros)\(zeros)\", share=\"\(share)\"\r\nContent-Length: 0\r\n\r\n"
            },
            { _ in "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" },
            { _ in "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n" },
            // It shows what it was sent.
            { request in
                let sent = request.split(separator: "\r\n").first { $0.contains("LoveseatPair") } ?? ""
                return
                    "HTTP/1.1 401 No\r\nWWW-\(sent.replacing("Authorization", with: "Authenticate"))\r\nContent-Length: 0\r\n\r\n"
            },
        ]
        for answer in answers {
            let server = try await HostileTLSServer(eve, .answers(answer))
            let fingerprint = try #require(eve.certs.first?.fingerprint)
            let code =
                usesDigits
                ? try code("123456", port: server.port)
                : try PairingCode(
                    text: "loveseat-pair:1?u=wss://127.0.0.1:\(server.port)/far&p=\(fingerprint)&s=abcdefgh"
                )
            #expect(await pair(code, as: try identity("phone")) != nil)
            // It gets no second message, and so no proof to work on.
            #expect(server.heard.withLockedValue { !$0.contains("proof=") })
        }
        #expect(try near.pairedPeers().isEmpty)
    }

    @Test func `a man in the middle with certificates for both sides is paired with neither`() async throws {
        let listener = try await serve(try identity("kiosk"))
        let (shown, _) = try authenticator.makeCode(for: listener)
        let eve = try await HostileTLSServer(
            try identity("kiosk"),
            .relays(port: Int(listener.port ?? 0))
        )
        let (phone, digits) = (try identity("phone"), shown.digits ?? "")
        #expect(await pair(try code(digits, port: eve.port), as: phone) == .httpAuthRequired)
        let heard = eve.heard.withLockedValue { $0 }
        // She saw both sides' messages up to the listener's proof, which the phone did not believe.
        #expect(heard.contains("Authorization: LoveseatPair"))
        #expect(heard.contains("WWW-Authenticate: LoveseatPair"))
        #expect(!heard.contains(digits))
        #expect(!heard.contains("HTTP/1.1 101"))
        #expect(try near.pairedPeers().isEmpty)
        #expect(try far.pairedPeers().isEmpty)
        // The right one is paired with all the same.
        #expect(await pair(try code(digits, port: Int(listener.port ?? 0)), as: phone) == nil)
        await listener.stop()
    }

    @Test func `five wrong guesses bring new digits, of which the owner is told`() async throws {
        let listener = try await serve(try identity("kiosk"))
        let port = Int(listener.port ?? 0)
        let (shown, events) = try authenticator.makeCode(for: listener)
        var stream = events.makeAsyncIterator()
        let eve = try identity("eve")
        for _ in 0..<5 {
            let wrong = try code(otherDigits(than: shown.digits), port: port)
            #expect(await pair(wrong, as: eve) == .httpAuthRequired)
        }
        guard case .replaced(let second) = await stream.next() else {
            Issue.record("the owner is not told of the guesses")
            return
        }
        #expect(second.digits != nil)
        #expect(second.text == shown.text)
        let phone = try identity("phone")
        if second.digits != shown.digits {
            #expect(await pair(try code(shown.digits, port: port), as: phone) == .httpAuthRequired)
        }
        #expect(await pair(try code(second.digits, port: port), as: phone) == nil)
        guard case .paired(let peer) = await stream.next() else {
            Issue.record("the owner is not told of the pairing")
            return
        }
        #expect(peer.fingerprint == phone.certs.first?.fingerprint)
        await listener.stop()
    }

    @Test func `guesses at the digits do not touch a code that is scanned`() async throws {
        let listener = try await serve(try identity("kiosk"))
        let (shown, _) = try authenticator.makeCode(for: listener)
        let eve = try identity("eve")
        for _ in 0..<7 {
            let wrong = try code(otherDigits(than: shown.digits), port: Int(listener.port ?? 0))
            #expect(await pair(wrong, as: eve) != nil)
        }
        #expect(await pair(try PairingCode(text: shown.text), as: try identity("phone")) == nil)
        await listener.stop()
    }

    @Test func `pairing ends after fifty guesses`() async throws {
        let listener = try await serve(try identity("kiosk"))
        // The code does not end by its age before the guesses end it.
        let (shown, events) = try authenticator.makeCode(for: listener, validFor: 3_600)
        let hasEnded = NIOLockedValueBox(false)
        let owner = Task {
            for await event in events {
                if case .paired = event { Issue.record("a guess was right: one in 20,000 runs") }
            }
            hasEnded.withLockedValue { $0 = true }
        }
        let eve = try identity("eve")
        let wrong = try code(otherDigits(than: shown.digits), port: Int(listener.port ?? 0))
        // Some are not let in, while the listener does not know yet that earlier ones have ended.
        var guesses = 0
        while !hasEnded.withLockedValue({ $0 }), guesses < 5_000 {
            _ = await pair(wrong, as: eve)
            guesses += 1
        }
        #expect((50..<5_000).contains(guesses))
        #expect(await pair(try PairingCode(text: shown.text), as: eve) == .httpAuthRequired)
        await listener.stop()
        owner.cancel()
    }

    @Test func `searching through a recorded exchange for the digits finds nothing`() throws {
        // The attacker was the client, guessed wrong, and kept every message and secret of the own side.
        let number = [UInt8](repeating: 7, count: 16)
        let label = Array("loveseat pairing 2 digits".utf8)
        func session(_ digits: Int) -> CPace.Session {
            CPace.Session(secret: Array("\(digits)".utf8), label: label, number: number)
        }
        let (right, guess) = (123_456, 123_000)
        let scalar = Curve25519.KeyAgreement.PrivateKey()
        let attacker = try CPace(session(guess), scalar: scalar)
        let listener = try CPace(session(right))
        let first = CPace.Message(share: attacker.share, associated: Array("eve".utf8))
        let second = CPace.Message(share: listener.share, associated: Array("kiosk".utf8))
        let key = try listener.key(first: first, second: second)
        let recorded = CPace.proof(key, session(right), of: second)
        // What was sent gives one key, whatever the digits are; what other digits would have sent gives keys that were not used.
        #expect(
            !CPace.isProof(
                recorded,
                try attacker.key(first: first, second: second),
                session(guess),
                of: second
            )
        )
        for candidate in 123_000..<124_000 {
            let tried = try CPace(session(candidate), scalar: scalar)
            let message = CPace.Message(share: tried.share, associated: Array("eve".utf8))
            let key = try tried.key(first: message, second: second)
            #expect(!CPace.isProof(recorded, key, session(candidate), of: second))
        }
    }

    @Test func `the digits and the secret never go over the wire`() async throws {
        let kiosk = try identity("kiosk")
        let server = try await HostileTLSServer(
            kiosk,
            .answers { _ in "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n" }
        )
        #expect(await pair(try code("314159", port: server.port), as: try identity("phone")) != nil)
        let heard = server.heard.withLockedValue { $0 }
        #expect(heard.contains("LoveseatPair"))
        #expect(!heard.contains("314159"))
    }

    @Test func `a peer's rights go by the name that the owner gave, never by one that it chose`() async throws
    {
        let names = NIOLockedValueBox<[String?]>([])
        var configuration = URLEndpointListenerConfiguration(collections: [try far.defaultCollection()])
        configuration.networkInterface = "127.0.0.1"
        configuration.tlsIdentity = try identity("kiosk")
        configuration.authenticator = authenticator
        configuration.accessPolicy = AccessPolicy { peer, _, _ in
            names.withLockedValue { $0.append(peer.name) }
            return .write
        }
        let listener = URLEndpointListener(configuration)
        try await listener.start()
        for given in [nil, "bob"] as [String?] {
            // The peer calls itself by somebody else's name.
            let phone = try identity("ana")
            let (shown, _) = try authenticator.makeCode(for: listener, name: given)
            let peer = try await PairingCode(text: shown.text).pair(with: near, identity: phone)
            names.withLockedValue { $0 = [] }
            var client = ReplicatorConfiguration(
                collections: [try near.defaultCollection()],
                target: try #require(peer.endpoint)
            )
            client.trust(peer, identity: phone)
            client.maxAttempts = 1
            let replicator = Replicator(client)
            replicator.start()
            #expect(await replicator.waitUntilStopped().error == nil)
            #expect(names.withLockedValue { Set($0) } == [given])
            let known = try far.pairedPeers().first { $0.fingerprint == phone.certs.first?.fingerprint }
            #expect(known?.isNameGiven == (given != nil))
        }
        await listener.stop()
    }
}
