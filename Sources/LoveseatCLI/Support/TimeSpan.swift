/// Spans of time as people write them: a number with `s`, `m`, `h` or `d`.
enum TimeSpan {
    private static let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400]

    /// The seconds of `90d` and the like; nil for anything else.
    static func seconds(_ text: String) -> Int64? {
        guard let unit = text.last.flatMap({ units[$0] }), let number = Int64(text.dropLast()), number >= 0
        else { return nil }
        let (seconds, overflow) = number.multipliedReportingOverflow(by: unit)
        return overflow ? nil : seconds
    }
}
