import ArgumentParser
import Foundation
import Loveseat

@main
struct Ratios: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Measures the rows of the table in README.md, as ratios within one run.",
        subcommands: [Run.self, Listen.self],
        defaultSubcommand: Run.self
    )

    struct Run: AsyncParsableCommand {
        @Option(help: "Only these rows, with commas in between: json, insert, get, sync, flat, latency, blob.")
        var only = "json,insert,get,sync,flat,latency,blob"
        @Option(help: "Documents in the long sync.")
        var documents = 1_000_000

        func run() async throws {
            let wanted = Set(only.split(separator: ",").map(String.init))
            print("| work | measured | ratio | floor | met |\n|---|---|---|---|---|")
            func show(_ rows: [Row]) {
                for row in rows { print(row.line) }
                fflush(nil)
            }
            if wanted.contains("json") { show([LocalRows.json()]) }
            if wanted.contains("insert") { show([try LocalRows.bulkInsert(100_000)]) }
            if wanted.contains("get") { show(try LocalRows.getAndSave(100_000)) }
            if wanted.contains("sync") { show(try await PeerRows.pushAndPull(100_000)) }
            if wanted.contains("flat") { show(try await PeerRows.flatness(documents)) }
            if wanted.contains("latency") { show([try await PeerRows.latency(500)]) }
            if wanted.contains("blob") { show([try await PeerRows.blob(200)]) }
        }
    }

    /// The other process.
    struct Listen: AsyncParsableCommand {
        static let configuration = CommandConfiguration(shouldDisplay: false)
        @Argument var folder: String
        @Argument var name: String

        func run() async throws {
            let database = try Database(name: name, config: DatabaseConfiguration(directory: folder))
            var configuration = URLEndpointListenerConfiguration(collections: [try database.defaultCollection()])
            configuration.disableTLS = true
            configuration.networkInterface = "127.0.0.1"
            let listener = URLEndpointListener(configuration)
            try await listener.start()
            print(listener.urls?.first?.absoluteString ?? "")
            fflush(nil)
            // Until the one who started it ends it.
            while true { try await Task.sleep(for: .seconds(3_600)) }
        }
    }
}
