import Logging
import Synchronization

/// The errors that this process logs. They are printed as before.
enum CapturedLog {
    private static let errors = Mutex<[String]>([])
    private static let isCapturing: Bool = {
        LoggingSystem.bootstrap { CapturingLogHandler(StreamLogHandler.standardError(label: $0)) }
        return true
    }()

    /// Captures what is logged from now on.
    static func begin() { _ = isCapturing }

    fileprivate static func note(_ message: String) { errors.withLock { $0.append(message) } }

    /// The errors that name something.
    static func errors(about name: String) -> [String] {
        errors.withLock { $0.filter { $0.contains(name) } }
    }
}

private struct CapturingLogHandler: LogHandler {
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
        if event.level >= .error { CapturedLog.note(event.message.description) }
        handler.log(event: event)
    }
}
