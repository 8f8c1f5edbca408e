import ArgumentParser
import Logging
import Loveseat

/// Options for the log on standard error.
struct LogOptions: ParsableArguments {
    @Flag(name: .shortAndLong, help: "Log each document and network event.")
    var verbose = false
    @Option(
        help: ArgumentHelp(
            "Levels, separated by commas: replicator=trace,network=debug. The parts are \(parts), the levels \(levels)."
        )
    )
    var log = ""

    private static let parts = LogDomain.allCases.map(\.rawValue).joined(separator: ", ")
    private static let levels = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")

    /// Sets the levels. Called once per process.
    func begin() throws {
        LoggingSystem.bootstrap { PrintableLogHandler(StreamLogHandler.standardError(label: $0)) }
        // The command prints its own error.
        for domain in LogDomain.allCases { domain.level = verbose ? .debug : .critical }
        for part in log.listItems {
            let pair = part.split(separator: "=")
            guard pair.count == 2, let domain = LogDomain(rawValue: String(pair[0])),
                let level = Logger.Level(rawValue: String(pair[1]))
            else {
                throw LoveseatError(
                    .invalidParameter,
                    "\"\(part)\" is not a log level: use part=level, of \(Self.parts) and \(Self.levels)"
                )
            }
            domain.level = level
        }
    }
}

/// Escapes control characters, which peers could otherwise send to the terminal.
private struct PrintableLogHandler: LogHandler {
    private var handler: StreamLogHandler

    init(_ handler: StreamLogHandler) { self.handler = handler }

    var logLevel: Logger.Level {
        get { handler.logLevel }
        set { handler.logLevel = newValue }
    }
    var metadata: Logger.Metadata {
        get { handler.metadata }
        set { handler.metadata = newValue }
    }
    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { handler[metadataKey: key] }
        set { handler[metadataKey: key] = newValue }
    }

    func log(event: LogEvent) {
        var event = event
        event.message = "\(event.message.description.printable)"
        handler.log(event: event)
    }
}
