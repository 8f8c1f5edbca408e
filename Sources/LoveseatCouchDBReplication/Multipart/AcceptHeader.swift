/// The media types that a client accepts.
package struct AcceptHeader: Hashable, Sendable {
    private struct Range: Hashable {
        let type: String
        let subtype: String
        let quality: Double

        /// How closely the range describes a media type: 3 for the type itself, 0 if it does not match.
        func specificity(_ type: String, _ subtype: String) -> Int {
            if self.type == "*", self.subtype == "*" { return 1 }
            guard self.type.equalsIgnoringCase(type) else { return 0 }
            if self.subtype == "*" { return 2 }
            return self.subtype.equalsIgnoringCase(subtype) ? 3 : 0
        }
    }

    /// The maximum number of ranges; further ones are ignored.
    package static let maximumRanges = 100

    /// The ranges of the header; nil if there is no header.
    private let ranges: [Range]?

    /// Parses the value of an `Accept` header. An absent or blank header accepts everything.
    ///
    /// Malformed ranges are ignored, and so is everything after 16 KiB or 100 ranges.
    package init(_ text: String?) {
        guard let text, !text.trimmedBlanks.isEmpty else {
            ranges = nil
            return
        }
        let bytes = text.utf8.prefix(MediaType.maximumLength)
        var scanner = HeaderScanner(String(decoding: bytes, as: UTF8.self))
        var ranges: [Range] = []
        while !scanner.isAtEnd, ranges.count < Self.maximumRanges {
            if let media = MediaType(&scanner), scanner.isAtEnd || scanner.next == 0x2C,
                let quality = Self.quality(media["q"])
            {
                ranges.append(Range(type: media.type, subtype: media.subtype, quality: quality))
            }
            _ = scanner.token { $0 != 0x2C }
            _ = scanner.skip(",")
        }
        self.ranges = ranges
    }

    /// The preference for a media type, from 0 (not acceptable) to 1. The most specific range decides.
    package func quality(_ type: String, _ subtype: String) -> Double {
        guard let ranges else { return 1 }
        var (best, quality) = (0, 0.0)
        for range in ranges {
            let specificity = range.specificity(type, subtype)
            guard specificity > 0, specificity >= best else { continue }
            quality = specificity > best ? range.quality : max(quality, range.quality)
            best = specificity
        }
        return quality
    }

    /// Returns whether a media type is acceptable, possibly by a wildcard.
    package func allows(_ type: String, _ subtype: String) -> Bool { quality(type, subtype) > 0 }

    /// Returns whether an acceptable media type is named without a wildcard.
    package func names(_ type: String, _ subtype: String) -> Bool {
        (ranges ?? []).contains { $0.specificity(type, subtype) == 3 } && allows(type, subtype)
    }

    /// Parses a weight of 0 to 1; nil if it is malformed. More than three digits after the point are accepted.
    private static func quality(_ text: String?) -> Double? {
        guard let text else { return 1 }
        let isNumber = text.utf8.allSatisfy { (0x30...0x39).contains($0) || $0 == 0x2E }
        guard isNumber, text.utf8.count <= 16, let value = Double(text), value <= 1 else { return nil }
        return value
    }
}

/// The form of a response that carries documents.
package enum DocumentFormat: Hashable, Sendable {
    /// `application/json`.
    case json
    /// `multipart/mixed`.
    case mixed
    /// `multipart/related`.
    case related
}

extension AcceptHeader {
    /// The format of one document with attachment bodies: multipart/related whenever it is acceptable, even if JSON is
    /// named as well.
    package var documentFormat: DocumentFormat { allows("multipart", "related") ? .related : .json }

    /// The format of a document's open revisions: multipart/mixed unless JSON is named.
    package var openRevisionsFormat: DocumentFormat { names("application", "json") ? .json : .mixed }

    /// The format of a bulk request for documents: JSON unless only a multipart type is named.
    package var bulkGetFormat: DocumentFormat {
        if names("application", "json") { return .json }
        if names("multipart", "mixed") { return .mixed }
        return names("multipart", "related") ? .related : .json
    }
}
