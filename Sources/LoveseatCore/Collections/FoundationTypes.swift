package import Foundation
package import LoveseatModel

extension JSONCodingHooks {
    /// Dates are ISO 8601 text with milliseconds, in UTC, of the years 0 to 9999; a `Decimal` is a number; `Data` is refused, since blobs
    /// are there for it; a `URL` and a `UUID` are their text; a ``BlobReference`` is its stub.
    package static let foundation = JSONCodingHooks(
        encode: { value in
            switch value {
            case let date as Date: .string(try date.iso8601Text())
            case let decimal as Decimal: try JSONValue(decimal)
            case let url as URL: .string(url.absoluteString)
            case is Data:
                throw LoveseatError(
                    .encodingError,
                    "Data has no form in JSON: save it as a blob and keep the BlobReference"
                )
            default: nil
            }
        },
        decode: { type, element in
            if type == Date.self {
                guard let text = element.string, let date = Date(iso8601: text) else {
                    throw LoveseatError(.decodingError, "\(element.value) is not an ISO 8601 date")
                }
                return date
            }
            // Earlier versions stored an object, which the type reads itself.
            if type == Decimal.self, let number = element.number {
                guard let decimal = Decimal(string: number.text, locale: Locale(identifier: "en_US_POSIX"))
                else {
                    throw LoveseatError(.decodingError, "\(number.text) is beyond the range of Decimal")
                }
                return decimal
            }
            if type == URL.self {
                guard let url = element.string.flatMap({ URL(string: $0) }) else {
                    throw LoveseatError(.decodingError, "\(element.value) is not a URL")
                }
                return url
            }
            return nil
        }
    )
}

extension JSONValue {
    /// - Throws: `encodingError` for NaN.
    fileprivate init(_ decimal: Decimal) throws(LoveseatError) {
        guard decimal.isFinite else {
            throw LoveseatError(.encodingError, "JSON has no number for the Decimal NaN")
        }
        self = .number(.text(decimal.description))
    }
}

extension Date {
    /// The seconds from 1970 to the reference date, 2001.
    private static let reference: Int64 = 978_307_200

    /// Reads a time as documents contain it; nil for anything else.
    package init?(iso8601 text: String) {
        guard let time = ISO8601Time(text) else { return nil }
        let seconds = time.seconds - Self.reference
        let (parts, isTooLarge) = seconds.multipliedReportingOverflow(by: time.fractionsPerSecond)
        guard !isTooLarge, parts.magnitude < 1 << 53 else {
            let rest = Double(time.fraction) / Double(time.fractionsPerSecond)
            self.init(timeIntervalSinceReferenceDate: Double(seconds) + rest)
            return
        }
        // One division, so that this is the double nearest to the time.
        let interval = Double(parts + time.fraction) / Double(time.fractionsPerSecond)
        self.init(timeIntervalSinceReferenceDate: interval)
    }

    /// The date in UTC, rounded to milliseconds.
    ///
    /// - Throws: `encodingError` for a year that four digits cannot name.
    package func iso8601Text() throws(LoveseatError) -> String {
        let milliseconds = (timeIntervalSinceReferenceDate * 1_000).rounded()
        guard milliseconds.magnitude < 1e15,
            let time = ISO8601Time(milliseconds: Int64(milliseconds) + Self.reference * 1_000)
        else {
            throw LoveseatError(
                .encodingError,
                "a date \(timeIntervalSince1970) seconds from 1970 is beyond the years 0 to 9999 of ISO 8601: store the number"
            )
        }
        return time.text
    }
}
