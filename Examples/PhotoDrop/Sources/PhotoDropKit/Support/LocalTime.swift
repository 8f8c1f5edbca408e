import Foundation

/// Times without a time zone, such as `2026-11-21T10:00:00`, which are those of this computer.
enum LocalTime {
    private static var formatter: DateFormatter {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.dateFormat = "yyyy-MM-dd'T'HH:mm:ss"
        return formatter
    }

    /// Returns nil for any other text.
    static func date(_ text: String) -> Date? { formatter.date(from: text) }

    static func text(_ date: Date) -> String { formatter.string(from: date) }
}
