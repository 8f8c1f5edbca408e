import ArgumentParser
import Foundation
import Loveseat

struct Push: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Send what a peer lacks.")
    @OptionGroup var options: SyncOptions
    func run() async throws { try await options.run(.push) }
}

struct Pull: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Fetch what is missing here from a peer.")
    @OptionGroup var options: SyncOptions
    func run() async throws { try await options.run(.pull) }
}

struct Sync: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Push and pull, so that both have the same.",
        discussion: """
            Ends when there is nothing left to do; with --continuous when it is interrupted, or the peer stops.

            EXAMPLE: loveseat sync trips ws://192.168.1.7:55990/trips --user ana --continuous
            """
    )
    @OptionGroup var options: SyncOptions
    func run() async throws { try await options.run(.pushAndPull) }
}

struct SyncOptions: ParsableArguments {
    @OptionGroup var argument: DatabaseArgument
    @Argument(help: "The peer: ws://host:port/database")
    var url: String
    @OptionGroup var credentials: Credentials
    @Option(
        help:
            "The collections, with commas in between; all if none is named. Those that are not here are made."
    )
    var collections = ""
    @Flag(help: "Go on with every change on either side.")
    var continuous = false
    @Flag(help: "As one JSON object at the end.")
    var json = false

    func run(_ type: ReplicatorType) async throws {
        guard let url = URL(string: url) else {
            throw LoveseatError(.invalidURL, "\(url) is no URL: use ws://host:port/database")
        }
        let names = try collections.collectionNames
        let authenticator = try credentials.authenticator()
        let database = try argument.open()
        for name in names { try database.createCollection(name: name.name, scope: name.scope) }
        var configuration = ReplicatorConfiguration(
            collections: try database.collections(named: names),
            target: URLEndpoint(url)
        )
        configuration.replicatorType = type
        configuration.continuous = continuous
        configuration.authenticator = authenticator
        // Who types a command wants to hear at once that the peer is not there.
        if !continuous { configuration.maxAttempts = 1 }
        let replicator = Replicator(configuration)
        Signals.onInterrupt { replicator.stop() }

        let failures = replicator.documentReplications
        let counting = Task { await Self.report(failures) }
        var bar = ProgressBar()
        replicator.start()
        for await status in replicator.statuses { bar.show(status) }
        bar.end()
        let status = await replicator.waitUntilStopped()
        let counts = await counting.value
        try await database.close()
        try summarize(counts, status, seconds: bar.seconds)
        if let error = status.error { throw error }
        if counts.failed > 0 { throw ExitCode(1) }
    }

    private struct Counts {
        var pushed = 0
        var pulled = 0
        var failed = 0
    }

    private static func report(_ events: Feed<DocumentReplication>) async -> Counts {
        var counts = Counts()
        for await event in events {
            if event.isPush { counts.pushed += event.missed } else { counts.pulled += event.missed }
            for document in event.documents {
                if let error = document.error {
                    counts.failed += 1
                    let verb = event.isPush ? "push" : "pull"
                    Output.remark(
                        "loveseat: cannot \(verb) \(document.scope).\(document.collection)/\(document.id): \(error.message)"
                    )
                } else if event.isPush {
                    counts.pushed += 1
                } else {
                    counts.pulled += 1
                }
            }
        }
        return counts
    }

    private func summarize(_ counts: Counts, _ status: Replicator.Status, seconds: Double) throws {
        if json {
            try Output.standard.line([
                "pushed": JSONValue(counts.pushed), "pulled": JSONValue(counts.pulled),
                "failed": JSONValue(counts.failed), "bytes": JSONValue(status.progress.completed),
                "seconds": JSONValue((seconds * 1_000).rounded() / 1_000),
                "error": status.error.map { .string($0.message) } ?? .null,
            ])
        } else {
            let all = counts.pushed + counts.pulled
            let rate = Int(Double(all) / max(seconds, 0.001))
            let time = (seconds * 1_000).rounded() / 1_000
            Output.remark(
                "\(counts.pushed) pushed, \(counts.pulled) pulled, \(counts.failed) failed in \(time) s (\(rate) documents/s)"
            )
        }
    }
}
