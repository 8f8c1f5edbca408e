import ArgumentParser
import Foundation
import Loveseat

struct ServeStdio: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve-stdio",
        abstract: "Let one peer replicate, over standard input and output.",
        discussion: "EXAMPLE\n  loveseat sync trips exec:'ssh host loveseat serve-stdio trips'"
    )
    @OptionGroup var argument: DatabaseArgument
    @Option(
        help: "The collections to serve, separated by commas. The default is all.",
        completion: .collections
    )
    var collections = ""
    @Flag(help: "Let the peer only pull.")
    var readOnly = false
    @Flag(help: "Send and accept only the difference if the peer has an earlier revision.")
    var delta = false
    @OptionGroup var logging: LogOptions

    func run() async throws {
        try logging.begin()
        Signals.begin()
        let database = try argument.open(keepsDeltaBases: delta)
        var configuration = MessageEndpointListenerConfiguration(
            collections: try database.collections(
                named: collections.collectionNames,
                toCreateIn: argument.database
            ),
            protocolType: .byteStream
        )
        configuration.readOnly = readOnly
        configuration.enableDeltaSync = delta
        let listener = MessageEndpointListener(configuration)
        let changes = listener.changes
        listener.accept(try await SocketTransport(input: dup(0), output: dup(1)))
        Signals.onInterrupt { Task { await listener.closeAll() } }
        var last: Replicator.Status?
        for await change in changes {
            last = change.status
            if change.status.activity == .stopped { break }
        }
        try await database.close()
        // A peer that disconnects is the normal end, and so is a signal.
        if Signals.interruption == nil, let error = last?.error, error.code != .webSocketGoingAway {
            throw error
        }
    }
}
