/// The headers of one part of a multipart body.
package struct PartHeaders: Hashable, Sendable {
    /// One header field.
    package struct Field: Hashable, Sendable {
        /// The name as it was sent.
        package let name: String
        /// The value, without blanks at its ends.
        package let value: String
    }

    /// The fields in the order of the part.
    package internal(set) var fields: [Field] = []

    /// Creates headers without fields.
    package init() {}

    /// Adds a field. Control characters in the value become spaces, so that it cannot add further fields.
    ///
    /// - Throws: ``MultipartError/malformedHeader`` if the name is not a token.
    package mutating func append(_ name: String, _ value: String) throws(MultipartError) {
        guard HeaderText.isToken(name) else { throw .malformedHeader }
        fields.append(Field(name: name, value: HeaderText.withoutControls(value).trimmedBlanks))
    }

    /// The value of the first field with a name, which is matched without regard to case.
    package subscript(name: String) -> String? {
        fields.first { $0.name.equalsIgnoringCase(name) }?.value
    }

    /// The media type of the part; nil if the header is absent or malformed.
    package var contentType: MediaType? { self["Content-Type"].flatMap { MediaType($0) } }

    /// The content encoding in lower case, such as `gzip`; nil if the header is absent or `identity`.
    package var contentEncoding: String? {
        guard let encoding = self["Content-Encoding"]?.lowercasedASCII, !encoding.isEmpty else { return nil }
        return encoding == "identity" ? nil : encoding
    }

    /// The announced length of the part's data, in bytes; nil if the header is absent or malformed.
    ///
    /// The parser finds the end of a part by its boundary alone: compare this value with the data.
    package var contentLength: Int? {
        guard let text = self["Content-Length"], text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        return Int(text)
    }

    /// The file name of `Content-Disposition`; nil if there is none.
    ///
    /// `filename*` in UTF-8 is preferred. In `filename`, quotation marks and backslashes that a peer did not escape are
    /// accepted.
    package var filename: String? {
        self["Content-Disposition"].flatMap { ContentDisposition(parsing: $0).filename }
    }

    /// Whether the part reports an error about a revision: its media type has the parameter `error="true"`.
    package var isError: Bool { contentType?["error"]?.equalsIgnoringCase("true") ?? false }

    /// The fields as lines that end with CRLF, without the empty line.
    var rendered: [UInt8] {
        var bytes: [UInt8] = []
        for field in fields {
            bytes += field.name.utf8
            bytes += [0x3A, 0x20]
            bytes += field.value.utf8
            bytes += [0x0D, 0x0A]
        }
        return bytes
    }
}

extension PartHeaders {
    /// Parses lines that end with CRLF. A line that begins with a blank continues the field before it.
    ///
    /// Bytes that are not UTF-8 become replacement characters.
    init(parsing block: ArraySlice<UInt8>) throws(MultipartError) {
        self.init()
        var lines: [[UInt8]] = []
        var rest = block
        while let feed = rest.firstIndex(of: 0x0A) {
            let line = rest[..<feed]
            guard line.last == 0x0D else { throw .bareLineFeed }
            let content = line.dropLast()
            if let first = content.first, first == 0x20 || first == 0x09 {
                guard let index = lines.indices.last else { throw .malformedHeader }
                lines[index].append(0x20)
                lines[index] += content.drop { $0 == 0x20 || $0 == 0x09 }
            } else {
                lines.append(Array(content))
            }
            rest = rest[(feed + 1)...]
        }
        guard rest.isEmpty else { throw .malformedHeader }
        for line in lines { try parse(line) }
    }

    /// Adds the field of one line. A line that begins with two dashes is a misplaced delimiter, even if a colon in the
    /// boundary makes it look like a field.
    private mutating func parse(_ line: [UInt8]) throws(MultipartError) {
        guard let colon = line.firstIndex(of: 0x3A), colon > 0, !line.starts(with: [0x2D, 0x2D]),
            line[..<colon].allSatisfy(HeaderScanner.isToken),
            line[colon...].allSatisfy({ $0 == 0x09 || ($0 >= 0x20 && $0 != 0x7F) })
        else { throw .malformedHeader }
        fields.append(
            Field(
                name: String(decoding: line[..<colon], as: UTF8.self),
                value: String(decoding: line[(colon + 1)...], as: UTF8.self).trimmedBlanks
            )
        )
    }
}
