import Foundation
import LoveseatCore
import LoveseatIdentity
import LoveseatModel
import LoveseatNetwork
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
        var configuration = URLEndpointListenerConfiguration(collections: [try far.defaultCollection()])
        configuration.networkInterface = "127.0.0.1"
        configuration.tlsIdentity = kiosk
        configuration.authenticator = authenticator
        let listener = URLEndpointListener(configuration)
        try await listener.start()
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

    /// Sends a request over TLS, then at once those that `next` makes of the answer, and returns what the listener answers to them
    /// until it closes the connection. Requests are given by their `Authorization`.
    private func converse(
        _ opening: String,
        port: Int,
        as identity: TLSIdentity,
        then next: (_ answer: String) throws -> [String]
    ) async throws -> String {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.certificateVerification = .none
        tls.certificateChain = try identity.certs.map {
            .certificate(try NIOSSLCertificate(bytes: $0.derBytes, format: .der))
        }
        tls.privateKey = .privateKey(try identity.sslPrivateKey())
        let context = try NIOSSLContext(configuration: tls)
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
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
        func requests(_ authorizations: [String]) -> ByteBuffer {
            let texts = authorizations.map {
                "GET /far HTTP/1.1\r\nHost: localhost\r\nAuthorization: \($0)\r\n\r\n"
            }
            return ByteBuffer(string: texts.joined())
        }
        return try await channel.executeThenClose { inbound, outbound in
            try await outbound.write(requests([opening]))
            var (answer, rest) = ("", "")
            var isAnswered = false
            for try await part in inbound {
                let text = String(decoding: part.readableBytesView, as: UTF8.self)
                if isAnswered { rest += text } else { answer += text }
                guard !isAnswered, answer.hasSuffix("\r\n\r\n") else { continue }
                isAnswered = true
                try await outbound.write(requests(try next(answer)))
            }
            return rest
        }
    }
}
