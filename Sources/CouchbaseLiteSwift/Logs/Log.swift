/// Writes log messages, as the library itself does.
public final class Log: Sendable {
    /// Files, as ``Database/log`` sets them up.
    public let file = FileLogger()

    init() {}

    /// Writes a message to every sink that wants it.
    public static func log(domain: LogDomain, level: LogLevel, message: String) {
        LogSinks.write(level, domain, message)
    }
}
