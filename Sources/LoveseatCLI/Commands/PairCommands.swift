import ArgumentParser
import Foundation
import Loveseat

struct Pair: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Pair two databases with a code, so that they trust each other.",
        discussion: """
            EXAMPLE
              loveseat pair show trips --port 55990       on one machine: shows a QR code and six digits
              loveseat pair use copy 123456 wss://192.168.1.7:55990/trips     on the other
              loveseat serve trips --port 55990 --paired
              loveseat sync copy --paired
            """,
        subcommands: [PairShow.self, PairUse.self, PairList.self, PairForget.self]
    )
}

struct PairShow: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show a code, and wait until another machine has used it.",
        discussion:
            "Prints the code's text and its digits on standard output, and the QR code on standard error."
    )
    @OptionGroup var argument: DatabaseArgument
    @Option(help: "The port; 0 for a free one. Use the same port for `serve` later.")
    var port: UInt16 = 0
    @Option(help: "The network interface or address to listen on. The default is all.")
    var interface: String?
    @Option(help: "The identity to show: anonymous, a label, cert.pem:key.pem, or file.p12.")
    var tls = "anonymous"
    @Option(help: "The number of seconds for which the code is valid.")
    var seconds = ListenerPairingAuthenticator.defaultValidity
    @Option(
        help:
            "A name for the other machine, which can be used in the file of `serve --access`. Without it, that file can only use its fingerprint."
    )
    var name: String?
    @OptionGroup var logging: LogOptions

    func validate() throws {
        guard name.map({ !$0.isEmpty }) ?? true else { throw ValidationError("--name is empty.") }
        guard (1...86_400).contains(seconds) else { throw ValidationError("--seconds must be 1 to 86400.") }
    }

    func run() async throws {
        try logging.begin()
        Signals.begin()
        let database: Database
        do { database = try argument.open() } catch LoveseatError.Code.busy {
            return try ControlClient.ask(.showPairing(name: name, seconds: seconds), folder: argument.folder)
        }
        let pairing = ListenerPairingAuthenticator(database: database)
        let listener = URLEndpointListener(try configuration(database, pairing))
        try await listener.start()
        let (name, seconds) = (name, seconds)
        let showing = Task {
            try await Self.show(pairing, listener, name: name, seconds: seconds) { line in
                switch line {
                case .output(let text): try Output.standard.line(text)
                case .remark(let text): Output.remark(text)
                }
                try Output.standard.flush()
            }
        }
        Signals.onInterrupt { showing.cancel() }
        let result = await showing.result
        try await database.close()
        if let signal = Signals.interruption { throw ExitCode(128 + signal) }
        try result.get()
    }

    /// Shows a code, and returns when it was used.
    static func show(
        _ pairing: ListenerPairingAuthenticator,
        _ listener: URLEndpointListener,
        name: String?,
        seconds: Double,
        _ reply: (ControlLine) throws -> Void
    ) async throws {
        let (code, events) = try pairing.makeCode(for: listener, name: name, validFor: seconds)
        for line in try QRCode.lines(code.text) { try reply(.remark(line)) }
        try reply(.output(code.text))
        try reply(.output(digits(code)))
        var peer: PairedPeer?
        for await event in events {
            switch event {
            case .paired(let found): peer = found
            case .replaced(let code):
                try reply(
                    .remark("loveseat: somebody guessed at the digits five times: use these instead")
                )
                try reply(.output(digits(code)))
            }
        }
        guard let peer else {
            throw LoveseatError(
                .timeout,
                "nobody used the code within \(Int(seconds).counted("second")), or strangers guessed at the digits too often"
            )
        }
        try reply(.remark("loveseat: paired with \(peer.name) (\(peer.fingerprint))"))
    }

    private static func digits(_ code: PairingCode) -> String {
        "\(code.digits ?? "") \(code.urls.first?.absoluteString ?? "")"
    }

    private func configuration(
        _ database: Database,
        _ pairing: ListenerPairingAuthenticator
    ) throws -> URLEndpointListenerConfiguration {
        var configuration = URLEndpointListenerConfiguration(collections: try database.collections(named: []))
        configuration.port = port
        configuration.networkInterface = interface
        configuration.tlsIdentity = try Identities.identity(tls)
        configuration.authenticator = pairing
        return configuration
    }
}

struct PairUse: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "use",
        abstract: "Use a code that another machine shows: its text, or its six digits with a URL."
    )
    @OptionGroup var argument: DatabaseArgument
    @Argument(
        help:
            "The text of the QR code, or the six digits; - to read --code-file or LOVESEAT_PAIRING_CODE, which other users cannot see."
    )
    var code: String
    @Argument(help: "The URL that was shown with the digits.") var url: String?
    @Option(help: "A file with the code in its first line.")
    var codeFile: String?
    @Option(help: "The identity to show to that peer from now on: anonymous, a label, or files.")
    var identity = "anonymous"

    func run() async throws {
        let database = try argument.create()
        let identity = try Identities.identity(identity)
        let peer = try await pairingCode().pair(with: database, identity: identity)
        try await database.close()
        Output.remark("loveseat: paired with \(peer.name) (\(peer.fingerprint))")
    }

    private func pairingCode() throws -> PairingCode {
        let given = code == "-" ? nil : code
        guard let code = try Secret.read(given, file: codeFile, variable: "LOVESEAT_PAIRING_CODE") else {
            throw LoveseatError(
                .invalidParameter,
                "there is no code: use --code-file or LOVESEAT_PAIRING_CODE"
            )
        }
        guard let url else { return try PairingCode(text: code) }
        guard let parsed = URL(string: url) else {
            throw LoveseatError(.invalidURL, "\(url) is not a URL: use wss://host:port/database")
        }
        return try PairingCode(digits: code, url: parsed)
    }
}

struct PairList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract:
            "List the peers that a database was paired with: fingerprint, name, origin of the name, and URLs.",
        discussion:
            "The origin of a name is \"given\" (pair show --name) or \"own\": the peer's host name, which grants no rights."
    )
    @OptionGroup var argument: DatabaseArgument
    func run() async throws {
        let database = try argument.read()
        for peer in try database.pairedPeers() {
            try Output.standard.fields(
                [peer.fingerprint, peer.name, peer.isNameGiven ? "given" : "own"] + peer.urls
            )
        }
        try await database.close()
        try Output.standard.flush()
    }
}

struct PairForget: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "forget",
        abstract: "Remove a paired peer, which is then no longer trusted."
    )
    @OptionGroup var argument: DatabaseArgument
    @Argument(help: "The fingerprint of its certificate.") var fingerprint: String
    func run() async throws {
        let database: Database
        do { database = try argument.open() } catch LoveseatError.Code.busy {
            return try ControlClient.ask(.forgetPeer(fingerprint: fingerprint), folder: argument.folder)
        }
        try Self.forget(fingerprint, in: database)
        try await database.close()
    }

    static func forget(_ fingerprint: String, in database: Database) throws {
        guard try database.pairedPeers().contains(where: { $0.fingerprint == fingerprint }) else {
            throw LoveseatError(.notFound, "there is no paired peer \(fingerprint)")
        }
        try database.removePairedPeer(fingerprint: fingerprint)
    }
}
