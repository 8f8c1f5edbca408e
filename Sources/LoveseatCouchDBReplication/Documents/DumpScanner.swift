package import LoveseatModel

/// An entry of a dump of a CouchDB database.
package enum DumpEntry: Hashable, Sendable {
    /// A row of `_all_docs`, as JSON.
    case row([UInt8])
    /// A document, as JSON.
    case document([UInt8])
}

/// Finds the documents in a dump of a CouchDB database as its text arrives. Holds one entry at a time.
///
/// A dump is one or more of these: an answer of `_all_docs` (`{"rows":[…]}`), the body of a `_bulk_docs` request as `couchdb-dump` prints
/// it (`{"docs":[…]}`), an array of documents, as `couchbackup` prints one a line, and a document whose first member is its `_id`, as
/// CouchDB prints it. Other members of the objects are skipped.
package struct DumpScanner: Sendable {
    private enum Place {
        /// `afterComma`: whether a key must follow.
        case root, beforeKey(afterComma: Bool), key, colon, beforeValue, skipped, afterMember
        case beforeEntry, entry, afterEntry
    }

    /// The longest key that is compared, in bytes.
    private static let maximumKey = 16
    /// The largest entry, in bytes. Base64 takes four bytes for three of an attachment.
    package static let standardMaximumEntry = 256 << 20

    private let maximumEntry: Int
    private var place = Place.root
    private var key: [UInt8] = []
    private var string = JSONStringBoundary()
    private var boundary = JSONValueBoundary()
    private var entry: [UInt8] = []
    /// Whether the entries are rows, not documents.
    private var hasRows = false
    /// Whether the entries are in a member of an object.
    private var isInObject = false
    /// Whether the entry is in an array; otherwise it is a document by itself.
    private var isInArray = true
    private var isFirstMember = false
    /// The line that is being read, and those in which the object around and the entry begin, from 1.
    package private(set) var line: Int
    private var objectLine = 1
    private var entryLine = 1
    /// Whether there was an array of documents, or a document.
    private var foundDocuments = false

    /// `line`: that of the first byte, from 1.
    package init(maximumEntry: Int = Self.standardMaximumEntry, line: Int = 1) {
        self.maximumEntry = maximumEntry
        self.line = line
    }

    /// Reads the next bytes, and calls `found` with each entry that they complete, and the line in which it begins.
    ///
    /// - Throws: what `found` throws; `invalidJSON` for what is not a dump, and for an entry that is too large.
    package mutating func receive(_ bytes: [UInt8], _ found: (DumpEntry, _ line: Int) throws -> Void) throws {
        var index = 0
        while index < bytes.count {
            switch place {
            case .skipped:
                let end = boundary.end(in: bytes, from: index)
                countLines(bytes[index..<(end ?? bytes.count)])
                // The value goes on in the next piece.
                guard let end else { return }
                index = end
                place = .afterMember
            case .entry:
                let end = boundary.end(in: bytes, from: index)
                try add(bytes[index..<(end ?? bytes.count)])
                countLines(bytes[index..<(end ?? bytes.count)])
                // The entry goes on in the next piece.
                guard let end else { return }
                index = end
                place = isInArray ? .afterEntry : .root
                let complete = entry
                entry = []
                try found(hasRows ? .row(complete) : .document(complete), entryLine)
            case .key:
                readKey(bytes[index])
                index += 1
            case .root, .beforeKey, .colon, .beforeValue, .afterMember, .beforeEntry, .afterEntry:
                let byte = bytes[index]
                // A value is read from its first byte on.
                if try !enter(byte) { index += 1 }
            }
        }
    }

    /// - Throws: `invalidJSON` if the dump is cut off, or has no documents' array.
    package func finish() throws(LoveseatError) {
        guard case .root = place else { throw Self.error("the dump ends too early: it was cut off") }
        guard foundDocuments else {
            throw Self.error("no array \"rows\" or \"docs\": it is not a dump of a CouchDB database")
        }
    }

    private mutating func countLines(_ bytes: ArraySlice<UInt8>) {
        line += bytes.count { $0 == UInt8(ascii: "\n") }
    }

    private mutating func add(_ bytes: ArraySlice<UInt8>) throws(LoveseatError) {
        guard entry.count + bytes.count <= maximumEntry else {
            throw Self.error(
                "a document with its attachments has more than \(maximumEntry) bytes: import from the server's URL instead"
            )
        }
        entry.append(contentsOf: bytes)
    }

    private mutating func readKey(_ byte: UInt8) {
        if string.isEnd(byte) {
            place = .colon
            return
        }
        if key.count <= Self.maximumKey { key.append(byte) }
    }

    /// Reads a byte outside of keys and values.
    ///
    /// - Returns: whether the byte is the first one of a value.
    private mutating func enter(_ byte: UInt8) throws(LoveseatError) -> Bool {
        if byte == UInt8(ascii: "\n") { line += 1 }
        guard ![0x20, 0x09, 0x0A, 0x0D].contains(byte) else { return false }
        switch (place, byte) {
        case (.root, UInt8(ascii: "{")): (place, objectLine) = (.beforeKey(afterComma: false), line)
        case (.root, UInt8(ascii: "[")): beginEntries(rows: false, isInObject: false)
        case (.beforeKey(false), UInt8(ascii: "}")), (.afterMember, UInt8(ascii: "}")): place = .root
        case (.beforeKey(let afterComma), UInt8(ascii: "\"")):
            (place, key, isFirstMember) = (.key, [], !afterComma)
        case (.colon, UInt8(ascii: ":")):
            place = .beforeValue
            if isFirstMember, key == Array("_id".utf8) || key == Array("_rev".utf8) { beginDocument() }
        case (.beforeValue, UInt8(ascii: "[")) where key == Array("rows".utf8):
            beginEntries(rows: true, isInObject: true)
        case (.beforeValue, UInt8(ascii: "[")) where key == Array("docs".utf8):
            beginEntries(rows: false, isInObject: true)
        case (.beforeValue, _) where !Array("}],:".utf8).contains(byte):
            (place, boundary) = (.skipped, JSONValueBoundary())
            return true
        case (.afterMember, UInt8(ascii: ",")): place = .beforeKey(afterComma: true)
        case (.beforeEntry, UInt8(ascii: "{")):
            (place, boundary, entryLine) = (.entry, JSONValueBoundary(), line)
            return true
        // Some scripts leave a comma after the last document.
        case (.beforeEntry, UInt8(ascii: "]")), (.afterEntry, UInt8(ascii: "]")):
            place = isInObject ? .afterMember : .root
        case (.afterEntry, UInt8(ascii: ",")): place = .beforeEntry
        default: throw Self.error("it is not a dump of a CouchDB database in JSON")
        }
        return false
    }

    /// Begins a document that is in no array, of which the first name was read.
    private mutating func beginDocument() {
        (place, boundary, entryLine) = (.entry, JSONValueBoundary(), objectLine)
        entry = Array("{\"".utf8) + key + Array("\":".utf8)
        _ = boundary.end(in: entry, from: 0)
        (hasRows, isInArray, foundDocuments) = (false, false, true)
    }

    private mutating func beginEntries(rows: Bool, isInObject: Bool) {
        place = .beforeEntry
        isInArray = true
        hasRows = rows
        self.isInObject = isInObject
        foundDocuments = true
    }

    private static func error(_ message: String) -> LoveseatError { LoveseatError(.invalidJSON, message) }
}
