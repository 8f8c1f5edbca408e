import ArgumentParser
import Loveseat
import LoveseatInspector

struct Inspect: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show a database in a browser on this computer, until interrupted.",
        discussion: """
            Prints the address of the page, which only this computer can reach. It shows documents, their revisions and conflicts, \
            blobs, and what `serve` does while it runs. Anybody on this computer who has the address can change documents.

            EXAMPLE
              loveseat inspect trips
            """
    )
    @OptionGroup var argument: DatabaseArgument
    @Option(help: "The port of the page; 0 for a free one.")
    var port: UInt16 = 0
    @OptionGroup(title: "Discovery") var discovery: DiscoveryOptions
    @OptionGroup var logging: LogOptions

    func run() async throws {
        try logging.begin()
        let (interrupts, continuation) = AsyncStream<Void>.makeStream()
        Signals.onInterrupt { continuation.yield() }
        let page = try await InspectorPage(
            argument,
            ControlBackend(database: argument.database),
            discovery,
            port: Int(port)
        )
        for await _ in interrupts { break }
        await page.close()
    }
}
