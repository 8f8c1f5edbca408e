import Foundation
import Loveseat

/// Files that are not what `import` reads, and what to do with them.
enum FileShape {
    /// Refuses what does not begin as JSON.
    ///
    /// - Throws: `invalidJSON` with the format, if it is known.
    static func check(_ line: [UInt8], _ name: String) throws(LoveseatError) {
        // The line is blank, or begins as a JSON object.
        guard let first = line.first(where: { ![0x20, 0x09, 0x0D].contains($0) }), first != UInt8(ascii: "{")
        else { return }
        let text = String(decoding: line.prefix(2_000), as: UTF8.self)
        let reason: String
        if line.starts(with: "SQLite format 3".utf8) {
            reason = "is an SQLite file, which is not read: export it as JSON"
        } else if line.starts(with: [0x1F, 0x8B]) {
            reason = "is compressed: use `gunzip -c \(argument(name)) | loveseat import DB -`"
        } else if line.starts(with: [0xFE, 0xFF]) || line.starts(with: [0xFF, 0xFE])
            || line.prefix(4).contains(0)
        {
            reason = "is UTF-16 or UTF-32: convert it to UTF-8"
        } else if text.hasPrefix("Content-Type:") || text.hasPrefix("MIME-Version:") {
            reason = "is a dump of CouchDB-Python: use --from-couchdb \(argument(name))"
        } else if text.contains(where: { ",;\t".contains($0) }), isField(first) {
            reason = "looks like CSV, and CSV is not supported: convert it to JSON lines"
        } else {
            return
        }
        throw LoveseatError(.invalidJSON, "\(name) \(reason)")
    }

    /// How a file is named on the command line.
    private static func argument(_ name: String) -> String { name == "standard input" ? "-" : name }

    /// Whether a value in a line of CSV can begin so.
    private static func isField(_ byte: UInt8) -> Bool {
        byte >= 0x80 || byte == UInt8(ascii: "\"") || Character(Unicode.Scalar(byte)).isLetter
            || Character(Unicode.Scalar(byte)).isNumber
    }

    /// Whether an object is what `_all_docs`, or `_bulk_docs`, has.
    static func isDump(_ element: JSONElement) -> Bool {
        if let row = element["rows"]?[0], isRow(row) { return true }
        return element["docs"]?[0].map { $0["_rev"] != nil || $0["_id"] != nil } ?? false
            && element.count <= 2
    }

    /// Whether an object is a row of CouchDB's `_all_docs`.
    static func isRow(_ element: JSONElement) -> Bool {
        guard element["id"]?.string != nil, element["key"]?.string != nil else { return false }
        return element["value"]?["rev"]?.string != nil
    }

    /// Whether an object is a row of CouchDB's `_changes`, or an answer with such rows.
    static func isChange(_ element: JSONElement) -> Bool {
        if let row = element["results"]?[0] { return isChange(row) }
        guard element["seq"] != nil, element["id"]?.string != nil else { return false }
        return element["changes"]?[0]?["rev"]?.string != nil
    }

    static func changes(_ name: String) -> LoveseatError {
        LoveseatError(
            .invalidParameter,
            "\(name) is a list of changes of a CouchDB: import its URL, or what _all_docs?include_docs=true&attachments=true answers, with --from-couchdb"
        )
    }

    static func dump(_ name: String) -> LoveseatError {
        LoveseatError(
            .invalidParameter,
            "\(name) is a dump of a CouchDB: import it with --from-couchdb \(argument(name))"
        )
    }

    /// Refuses a file of one object without an ID that is more likely to hold documents than to be one.
    static func checkOnlyObject(_ element: JSONElement, _ name: String) throws(LoveseatError) {
        let members = Array(element.members)
        let arrays = members.filter { member in
            var items = member.value.items.makeIterator()
            guard let first = items.next() else { return false }
            return first.kind == .object && items.allSatisfy { $0.kind == .object }
        }
        let advice = "if it is one document, put it in [ ]"
        if let array = arrays.first {
            throw LoveseatError(
                .invalidParameter,
                "\(name) is one object without an ID, with an array of objects: use --array \(array.key) to import these; \(advice)"
            )
        }
        if !members.isEmpty, members.allSatisfy({ $0.value.kind == .object }) {
            throw LoveseatError(
                .invalidParameter,
                "\(name) is one object of objects without an ID: use --keyed to import each with its key as the ID; \(advice)"
            )
        }
    }
}
