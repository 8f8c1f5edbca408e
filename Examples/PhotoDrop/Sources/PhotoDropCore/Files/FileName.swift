import Foundation

/// Names of files that senders propose.
package enum FileName {
    /// The longest name, in bytes of UTF-8.
    package static let maximumBytes = 200
    private static let fallback = "photo"

    /// Makes a proposed name safe to use in a folder: its last component, without control characters, characters that change the direction of
    /// text, and leading dots, at most 200 bytes long, with the extension that belongs to the type.
    package static func cleaned(_ proposed: String, type: ImageType) -> String {
        let last = proposed.split(whereSeparator: { $0 == "/" || $0 == "\\" }).last.map(String.init) ?? ""
        let scalars = last.precomposedStringWithCanonicalMapping.unicodeScalars.filter(isAllowed)
        let text = String(String.UnicodeScalarView(scalars))
            .drop { $0 == "." || $0.isWhitespace }
        var (stem, ending) = split(String(text))
        if !type.allows(fileExtension: ending.lowercased()) {
            // What looks like an extension and is not an image's belongs to the name.
            let isImage = ImageType.allCases.contains { $0.allows(fileExtension: ending.lowercased()) }
            if !ending.isEmpty, !isImage { stem += ".\(ending)" }
            ending = type.fileExtension
        }
        stem = stem.trimmingCharacters(in: .whitespaces)
        if stem.isEmpty { stem = fallback }
        return "\(shortened(stem, to: maximumBytes - ending.utf8.count - 1)).\(ending)"
    }

    /// A name with a number before its extension: `IMG_1 (2).jpg`.
    package static func numbered(_ name: String, _ number: Int) -> String {
        guard number > 1 else { return name }
        let (stem, ending) = split(name)
        let suffix = " (\(number))"
        let room = maximumBytes - ending.utf8.count - 1 - suffix.utf8.count
        return "\(shortened(stem, to: room))\(suffix).\(ending)"
    }

    private static func split(_ name: String) -> (stem: String, ending: String) {
        guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return (name, "") }
        return (String(name[..<dot]), String(name[name.index(after: dot)...]))
    }

    private static func shortened(_ text: String, to bytes: Int) -> String {
        var text = text
        while text.utf8.count > max(bytes, 1) { text.removeLast() }
        return text
    }

    private static func isAllowed(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned:
            false
        default: true
        }
    }
}
