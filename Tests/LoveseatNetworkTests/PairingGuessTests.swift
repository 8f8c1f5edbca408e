import Foundation
import LoveseatCore
import LoveseatIdentity
import LoveseatModel
import LoveseatNetwork
import LoveseatStorage
import LoveseatTesting
import NIOCore
import NIOPosix
import NIOSSL
import Testing

/// A client that guesses at a pairing code again over the same connection.
struct PairingGuessTests {
    private let scratch: Scratch
    private let far: Database

    init() throws {
        scratch = try Scratch()
        far = try scratch.database("far")
    }

    private static func identity(_ name: String) throws -> TLSIdentity {
        try TLSIdentity.createIdentity(
            for: [.serverAuth, .clientAuth],
            attributes: [certAttrCommonName: name],
            label: nil
        )
    }

    enum SecondGuess: CaseIterable {
        case proof, opening
    }

    @Test(.timeLimit(.minutes(1)), arguments: SecondGuess.allCases)
    func `a connection is good for one guess at a pairing code`(_ second: SecondGuess) async throws {
        let (kiosk, eve) = (try Self.identity("kiosk"), try Self.identity("eve"))
        let fingerprints = try [kiosk, eve].map { try #require($0.certs.first?.fingerprint) }
        let authenticator = ListenerPairingAuthenticator(database: far)
        let listener = try await serve(kiosk, authenticator)
        let (shown, _) = try authenticator.makeCode(for: listener)
        // It knows the digits, so that only the rule keeps it out.
        func initiator() throws -> PairingInitiator {
            try PairingInitiator(
                secret: shown.digits ?? "",
                form: .digits,
                client: fingerprints[1],
                name: "eve"
            )
        }
        let first = try initiator()
        let heard = try await converse(first.opening, port: Int(listener.port ?? 0), as: eve) { answer in
            let challenge = try #require(
                answer.split(separator: "\r\n").first { $0.hasPrefix("WWW-Authenticate: ") }
            )
            let right = try first.answer(String(challenge.dropFirst(18)), listener: fingerprints[0])
            return switch second {
            case .proof: ["LoveseatPair proof=\"\(String(repeating: "0", count: 128))\"", right]
            case .opening: [try initiator().opening, right]
            }
        }
        #expect(heard.hasPrefix("HTTP/1.1 401 "))
        #expect(heard.contains("Connection: close") || heard.contains("connection: close"))
        // The one answer is the last, and no second challenge.
        #expect(heard.components(separatedBy: "HTTP/1.1").count == 2)
        #expect(!heard.contains("LoveseatPair proof"))
        #expect(try far.pairedPeers().isEmpty)
        await listener.stop()
    }

    @Test(.timeLimit(.minutes(1)))
    func `a client that sends more before it has the listener's proof is refused at once`()
        async throws
    {
        let (kiosk, eve) = (try Self.identity("kiosk"), try Self.identity("eve"))
        let authenticator = ListenerPairingAuthenticator(database: far)
        let listener = try await serve(kiosk, authenticator)
        let (shown, _) = try authenticator.makeCode(for: listener)
        let initiator = try PairingInitiator(
            secret: shown.digits ?? "",
            form: .digits,
            client: try #require(eve.certs.first?.fingerprint),
            name: "eve"
        )
        let channel = try await Self.connect(to: Int(listener.port ?? 0), as: eve)
        let heard = try await channel.executeThenClose { inbound, outbound in
            try await outbound.write(Self.requests([initiator.opening, initiator.opening]))
            var heard = ""
            for try await part in inbound { heard += String(decoding: part.readableBytesView, as: UTF8.self) }
            return heard
        }
        #expect(heard.hasPrefix("HTTP/1.1 400 "))
        #expect(heard.components(separatedBy: "HTTP/1.1").count == 2)
        #expect(!heard.contains("LoveseatPair"))
        await listener.stop()
    }

    private func setPairedPeers(_ text: String) throws {
        try far.defaultCollection().openStore().write { try $0.setInfo("paired_peers", text) }
    }

    @Test func `clients that the database cannot store do not use up the guesses at the digits`() async throws
    {
        let (kiosk, phone) = (try Self.identity("kiosk"), try Self.identity("phone"))
        let fingerprints = try [kiosk, phone].map { try #require($0.certs.first?.fingerprint) }
        let authenticator = ListenerPairingAuthenticator(database: far)
        let listener = try await serve(kiosk, authenticator)
        let (shown, _) = try authenticator.makeCode(for: listener)
        func pair() throws -> PeerIdentity? {
            let initiator = try PairingInitiator(
                secret: shown.digits ?? "",
                form: .digits,
                client: fingerprints[1],
                name: "phone"
            )
            let opening = try #require(PairingHeader(initiator.opening))
            let client = ConnectingClient(certificates: phone.certs)
            let run = try #require(authenticator.begin(opening, client, listener: fingerprints[0]))
            let answer = try initiator.answer(run.challenge, listener: fingerprints[0])
            return authenticator.complete(run, try #require(PairingHeader(answer)))
        }
        try setPairedPeers("damaged")
        for _ in 0..<7 { #expect(try pair() == nil) }
        try setPairedPeers("[]")
        #expect(try pair()?.fingerprint == fingerprints[1])
        #expect(try far.pairedPeers().map(\.fingerprint) == [fingerprints[1]])
        await listener.stop()
    }

    private func serve(
        _ identity: TLSIdentity,
        _ authenticator: ListenerPairingAuthenticator
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

    /// Sends a request over TLS, then at once those that `next` makes of the answer, and returns what the listener answers to them
    /// until it closes the connection. Requests are given by their `Authorization`.
    private func converse(
        _ opening: String,
        port: Int,
        as identity: TLSIdentity,
        then next: (_ answer: String) throws -> [String]
    ) async throws -> String {
        let channel = try await Self.connect(to: port, as: identity)
        return try await channel.executeThenClose { inbound, outbound in
            try await outbound.write(Self.requests([opening]))
            var (answer, rest) = ("", "")
            var isAnswered = false
            for try await part in inbound {
                let text = String(decoding: part.readableBytesView, as: UTF8.self)
                if isAnswered { rest += text } else { answer += text }
                guard !isAnswered, answer.hasSuffix("\r\n\r\n") else { continue }
                isAnswered = true
                try await outbound.write(Self.requests(try next(answer)))
            }
            return rest
        }
    }

    private static func requests(_ authorizations: [String]) -> ByteBuffer {
        let texts = authorizations.map {
            "GET /far HTTP/1.1\r\nHost: localhost\r\nAuthorization: \($0)\r\n\r\n"
        }
        return ByteBuffer(string: texts.joined())
    }

    /// Connects over TLS, and shows an identity.
    private static func connect(
        to port: Int,
        as identity: TLSIdentity
    ) async throws -> NIOAsyncChannel<ByteBuffer, ByteBuffer> {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.certificateVerification = .none
        tls.certificateChain = try identity.certs.map {
            .certificate(try NIOSSLCertificate(bytes: $0.derBytes, format: .der))
        }
        tls.privateKey = .privateKey(try identity.sslPrivateKey())
        let context = try NIOSSLContext(configuration: tls)
        return try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(host: "127.0.0.1", port: port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(
                        NIOSSLClientHandler(context: context, serverHostname: nil)
                    )
                    return try NIOAsyncChannel<ByteBuffer, ByteBuffer>(
                        wrappingChannelSynchronously: channel
                    )
                }
            }
    }
}
