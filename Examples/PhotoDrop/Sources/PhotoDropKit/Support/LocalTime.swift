import Foundation

/// Times without a time zone, such as `2026-11-21T10:00:00`, which are those of this computer; and those of Greenwich, which end with a Z.
enum LocalTime {
    private static func formatter(isUniversal: Bool = false) -> DateFormatter {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.dateFormat = "yyyy-MM-dd'T'HH:mm:ss" + (isUniversal ? "'Z'" : "")
        if isUniversal { formatter.timeZone = .gmt }
        return formatter
    }

    /// Returns nil for any other text.
    static func date(_ text: String) -> Date? { formatter(isUniversal: text.hasSuffix("Z")).date(from: text) }

    static func text(_ date: Date) -> String { formatter().string(from: date) }

    /// The time of Greenwich, which is the same on every computer.
    static func universalText(_ date: Date) -> String { formatter(isUniversal: true).string(from: date) }
}
