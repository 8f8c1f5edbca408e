import ArgumentParser
import Foundation
import Loveseat

struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Let peers replicate with a database, until interrupted.",
        discussion: """
            Prints the URLs, one a line, as soon as it accepts. Connections are in the clear in this version, with or \
            without --no-tls.

            EXAMPLE: loveseat serve trips --port 55990 --user ana --password-file secret.txt --no-tls
            """
    )

    @OptionGroup var argument: DatabaseArgument
    @Option(help: "The port; 0 for a free one.")
    var port: UInt16 = 0
    @Option(help: "The network interface or address to listen on; all if it is not named.")
    var interface: String?
    @OptionGroup var credentials: Credentials
    @Option(help: "The collections to serve, with commas in between; all if none is named.")
    var collections = ""
    @Flag(help: "Let peers pull only.")
    var readOnly = false
    @Flag(help: "Send and take only the difference where a peer has an earlier revision.")
    var delta = false
    @Flag(help: "Serve in the clear.")
    var noTls = false

    @OptionGroup var logging: LogOptions

    func run() async throws {
        try logging.begin()
        let database = try argument.open(keepsDeltaBases: delta)
        var configuration = URLEndpointListenerConfiguration(
            collections: try database.collections(named: collections.collectionNames)
        )
        configuration.port = port
        configuration.networkInterface = interface
        configuration.readOnly = readOnly
        configuration.enableDeltaSync = delta
        configuration.disableTLS = true
        if !noTls { Output.remark("loveseat: this version has no TLS: serving in the clear") }
        if let user = credentials.user {
            let password = try credentials.password()
            configuration.authenticator = ListenerPasswordAuthenticator {
                ListenerPasswordAuthenticator.isEqual($0, user)
                    && ListenerPasswordAuthenticator.isEqual($1, password)
            }
        }
        let listener = URLEndpointListener(configuration)
        let (interrupts, continuation) = AsyncStream<Void>.makeStream()
        Signals.onInterrupt { continuation.yield() }
        try await listener.start()
        for url in listener.urls ?? [] { try Output.standard.line(url.absoluteString) }
        try Output.standard.flush()
        for await _ in interrupts { break }
        try await database.close()
    }
}

extension Database {
    /// Collections by name; every one if none is named.
    func collections(named names: [CollectionName]) throws -> [Loveseat.Collection] {
        guard !names.isEmpty else { return try scopes().flatMap { try $0.collections() } }
        return try names.map { name in
            guard let collection = try collection(name: name.name, scope: name.scope) else {
                throw LoveseatError(
                    .notFound,
                    "there is no collection \(name.fullName): make it with `loveseat create DB --collections \(name)`"
                )
            }
            return collection
        }
    }
}
