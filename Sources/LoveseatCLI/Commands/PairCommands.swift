import ArgumentParser
import Foundation
import Loveseat
import LoveseatDiscovery

struct Pair: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Pair two databases with a code, so that they trust each other.",
        discussion: """
            EXAMPLES
              # on one machine, which shows a QR code and six digits
              loveseat pair show trips --port 55990
              # on the other
              loveseat pair use copy 123456 wss://192.168.1.7:55990/trips
              # afterwards, on each
              loveseat serve trips --port 55990 --paired
              loveseat sync copy --paired
              # with --advertise, the digits are enough
              loveseat pair show trips --advertise
              loveseat pair use copy 123456
              loveseat serve trips --paired --advertise
              loveseat sync copy --paired --find "trips on ana"
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
    @Option(
        help: "The identity to show: anonymous, a label, cert.pem:key.pem, or file.p12.",
        completion: .identity
    )
    var tls = "anonymous"
    @Option(help: "The number of seconds for which the code is valid.")
    var seconds = ListenerPairingAuthenticator.defaultValidity
    @Option(
        help:
            "A name for the other machine, which can be used in the file of `serve --access`. Without it, that file can only use its fingerprint."
    )
    var name: String?
    @OptionGroup(title: "Discovery") var advertise: AdvertiseOptions
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
        var advertisement = advertise.advertisement
        advertisement?.isPairing = true
        configuration.advertise = advertisement
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
    @Argument(
        help:
            "The URL that was shown with the digits. It may be omitted if the other machine has --advertise."
    )
    var url: String?
    @Option(help: "A file with the code in its first line.", completion: .file())
    var codeFile: String?
    @Option(
        help: "The identity to show to that peer from now on: anonymous, a label, or files.",
        completion: .identity
    )
    var identity = "anonymous"
    @OptionGroup(title: "Discovery") var discovery: DiscoveryOptions

    func run() async throws {
        Signals.begin()
        let code = try await pairingCode()
        let identity = try Identities.identity(identity)
        let isNew = try !argument.exists
        let database = try argument.createUnasked()
        let peer: PairedPeer
        do { peer = try await code.pair(with: database, identity: identity) } catch {
            // A mistyped name must not leave a database. The error of the pairing is the one to report.
            if isNew { try? await database.delete() }
            throw error
        }
        try await database.close()
        if isNew { Output.notice(argument.creationNews) }
        Output.notice("loveseat: paired with \(peer.name) (\(peer.fingerprint))")
    }

    private func pairingCode() async throws -> PairingCode {
        let given = code == "-" ? nil : code
        guard let code = try Secret.read(given, file: codeFile, variable: "LOVESEAT_PAIRING_CODE") else {
            throw LoveseatError(
                .invalidParameter,
                "there is no code: use --code-file or LOVESEAT_PAIRING_CODE"
            )
        }
        guard let url else {
            // The text of a QR code has its URLs.
            guard code.utf8.count < 16 else { return try PairingCode(text: code) }
            // Without six digits, there is nothing to look for on the network.
            try PairingCode.plain(code)
            return try PairingCode(digits: code, url: try await listenerURL())
        }
        guard let parsed = URL(string: url) else {
            throw LoveseatError(.invalidURL, "\(url) is not a URL: use wss://host:port/database")
        }
        return try PairingCode(digits: code, url: parsed)
    }
}

extension PairUse {
    /// The URL of the only listener on this network that waits for a code.
    ///
    /// The exchange does not tell another listener the code, but each attempt with a wrong one is a guess there.
    private func listenerURL() async throws -> URL {
        let peer = try await discovery.find(
            "a machine that shows a code with --advertise",
            where: \.isPairing
        )
        let browser = try discovery.browser()
        // Others may answer a little later.
        try await Task.sleep(for: .milliseconds(500))
        let others = browser.peers.filter { $0.isPairing && $0.id != peer.id }
        guard others.isEmpty else {
            throw LoveseatError(
                .invalidParameter,
                "several machines show a code (\(([peer] + others).map(\.name).sorted().joined(separator: ", "))): give the URL that is shown with the digits"
            )
        }
        guard let url = try await peer.resolve().first?.url(scheme: "wss") else {
            throw LoveseatError(
                .timeout,
                "\(peer.name) cannot be reached: give the URL that is shown with the digits"
            )
        }
        return url
    }
}

struct PairList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract:
            "List the peers that a database was paired with: fingerprint, name, origin of the name, and URLs.",
        discussion:
            "The origin of a name is \"given\" (pair show --name) or \"own\": the peer's host name, which grants no rights. It is \"seen\" for a service whose certificate was trusted when it was first seen (sync --find); such a peer may not connect to this database.",
        aliases: ["ls"]
    )
    @OptionGroup var argument: DatabaseArgument
    @Flag(help: "Print one JSON object per line.")
    var json = false

    func run() async throws {
        let database = try argument.read()
        for peer in try database.pairedPeers() {
            try show(peer.fingerprint, peer.name, peer.isNameGiven ? "given" : "own", peer.urls)
        }
        for peer in try database.knownPeers() { try show(peer.fingerprint, peer.service, "seen", []) }
        try await database.close()
        try Output.standard.flush()
    }

    private func show(_ fingerprint: String, _ name: String, _ origin: String, _ urls: [String]) throws {
        guard json else { return try Output.standard.fields([fingerprint, name, origin] + urls) }
        try Output.standard.line([
            "fingerprint": .string(fingerprint), "name": .string(name), "origin": .string(origin),
            "urls": .array(urls.map { .string($0) }),
        ])
    }
}

struct PairForget: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "forget",
        abstract: "Remove a peer of `pair list`, which is then no longer trusted.",
        aliases: ["rm"]
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
        let isPaired = try database.pairedPeers().contains { $0.fingerprint == fingerprint }
        let isKnown = try database.knownPeers().contains { $0.fingerprint == fingerprint }
        guard isPaired || isKnown else {
            throw LoveseatError(.notFound, "there is no peer \(fingerprint) in `loveseat pair list`")
        }
        if isPaired { try database.removePairedPeer(fingerprint: fingerprint) }
        if isKnown { try database.removeKnownPeer(fingerprint: fingerprint) }
    }
}
