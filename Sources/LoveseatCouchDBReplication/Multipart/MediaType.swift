/// A media type with its parameters, such as `multipart/related; boundary="x"`.
package struct MediaType: Hashable, Sendable {
    /// One parameter of a media type.
    package struct Parameter: Hashable, Sendable {
        /// The name, in lower case.
        package let name: String
        /// The value, without quotation marks and escapes.
        package let value: String
    }

    /// The maximum length of a header value that is parsed, in bytes.
    package static let maximumLength = 16 << 10

    /// The part before the slash, in lower case.
    package let type: String
    /// The part after the slash, in lower case.
    package let subtype: String
    /// The parameters in the order of the header.
    package let parameters: [Parameter]

    /// Parses the value of a `Content-Type` header.
    ///
    /// Returns nil for a value that is malformed, is longer than 16 KiB, or names a parameter twice. Superfluous
    /// semicolons and blanks around `=` are accepted.
    package init?(_ text: String) {
        guard text.utf8.count <= Self.maximumLength else { return nil }
        var scanner = HeaderScanner(text)
        self.init(&scanner)
        guard scanner.isAtEnd else { return nil }
    }

    /// Reads a media type up to a comma or the end.
    init?(_ scanner: inout HeaderScanner) {
        scanner.skipBlanks()
        guard let type = scanner.token(), scanner.skip("/"), let subtype = scanner.token() else { return nil }
        var parameters: [Parameter] = []
        var names: Set<String> = []
        scanner.skipBlanks()
        while scanner.skip(";") {
            scanner.skipBlanks()
            guard let next = scanner.next, next != 0x3B, next != 0x2C else { continue }
            guard let name = scanner.token()?.lowercasedASCII, names.insert(name).inserted else { return nil }
            scanner.skipBlanks()
            guard scanner.skip("=") else { return nil }
            scanner.skipBlanks()
            let value =
                scanner.next == 0x22
                ? scanner.quotedString() : scanner.token(HeaderScanner.isUnquotedValue)
            guard let value else { return nil }
            parameters.append(Parameter(name: name, value: value))
            scanner.skipBlanks()
        }
        self.type = type.lowercasedASCII
        self.subtype = subtype.lowercasedASCII
        self.parameters = parameters
    }

    /// The value of a parameter; the name is matched without regard to case.
    package subscript(name: String) -> String? {
        parameters.first { $0.name.equalsIgnoringCase(name) }?.value
    }

    /// The valid boundary of a multipart type; nil for other types, and without a valid `boundary` parameter.
    package var boundary: String? {
        guard type == "multipart", let boundary = self["boundary"], MultipartBoundary.isValid(boundary) else {
            return nil
        }
        return boundary
    }

    /// Returns whether the type and subtype match, without regard to case and parameters.
    package func matches(_ type: String, _ subtype: String) -> Bool {
        self.type.equalsIgnoringCase(type) && self.subtype.equalsIgnoringCase(subtype)
    }
}
