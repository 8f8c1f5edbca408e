import Foundation
import Loveseat

/// The source of documents to import.
struct DocumentSource {
    /// A document and where it is, for messages.
    struct Item {
        /// The ID that the file gives it outside the document; nil if it gives none.
        var id: String?
        let element: JSONElement
        let place: String
        /// Where it ends in the file, in bytes.
        let end: Int
    }

    private let array: String?
    private let isKeyed: Bool
    /// Whether a property is the documents' ID, so that one without `_id` or `id` is not unusual.
    private let hasIDField: Bool
    private let file: FileSource
    private var name: String { file.name }
    /// Which share of the file is before a position, from 0 to 1; nil if that is not known.
    func share(before position: Int) -> Double? { file.share(before: position) }

    /// The maximum length of a document, or of a JSON array, in bytes.
    private static let maximumBytes = 256 << 20
    private static let piece = 1 << 20

    init(file path: String, array: String?, isKeyed: Bool, hasIDField: Bool) throws {
        file = try FileSource(path)
        (self.array, self.isKeyed, self.hasIDField) = (array, isKeyed, hasIDField)
    }

    /// Calls `body` with each document. Objects are read one after another, each on a line, or over several lines.
    func forEach(_ body: (Item) throws -> Void) throws {
        var reader = LineReader(file: file, maximumBytes: Self.maximumBytes, piece: Self.piece)
        // The file has no text.
        guard let line = try reader.nextText() else { return }
        if array != nil || isKeyed || line.first(where: { !$0.isBlank }) == UInt8(ascii: "[") {
            let start = TextPosition(line: reader.number)
            let text = try line + [0x0A] + reader.rest()
            return try forEachItem(of: text, startingAt: start, end: reader.position, body)
        }
        try FileShape.check(line, name)
        var cursor = Cursor(line, number: reader.number)
        var isFirst = true
        while true {
            cursor.skipBlanks()
            let place = "\(name), \(cursor.place)"
            let element = try value(&cursor, &reader)
            let end = reader.position - cursor.rest
            var isLast = false
            if cursor.isAtEnd {
                if let next = try reader.nextText() {
                    cursor = Cursor(next, number: reader.number)
                } else {
                    isLast = true
                }
            }
            if isFirst { try checkShape(of: element, isOnlyOne: isLast) }
            isFirst = false
            try body(Item(element: element, place: place, end: end))
            if isLast { return }
        }
    }

    /// Reads the value at a position, which may go on in the next lines, and moves the position to the next value or the end.
    private func value(_ cursor: inout Cursor, _ reader: inout LineReader) throws -> JSONElement {
        if cursor.position == 0 {
            // Most often a line is a document.
            do throws(JSONError) {
                let element = try parse(cursor.text, depth: 0)
                cursor.moveToEnd()
                return element
            } catch {
                guard error.reason == .truncated || error.reason == .trailingBytes else {
                    throw self.error(error, in: cursor.text, at: cursor.place)
                }
            }
        }
        var scanner = ValueEnd(position: cursor.position)
        while scanner.end(in: cursor.text) == nil {
            if cursor.position > 0 {
                cursor.trim()
                scanner = ValueEnd(position: 0)
                continue
            }
            // No text of JSON goes on in the next line.
            guard !scanner.isInString, let line = try reader.next() else {
                do throws(JSONError) {
                    let element = try parse(cursor.text, depth: 0)
                    cursor.moveToEnd()
                    return element
                } catch { throw self.error(error, in: cursor.text, at: cursor.place) }
            }
            guard cursor.text.count + line.count <= Self.maximumBytes else { throw reader.tooLong }
            cursor.append(line)
        }
        let text = cursor.text
        let end = scanner.end(in: text) ?? text.count
        let rest = text[end...].drop(while: \.isBlank)
        guard rest.isEmpty || rest.first == UInt8(ascii: "{") else {
            let line = text[cursor.position...]
            throw error(JSONError(.trailingBytes, at: line.count - rest.count), in: line, at: cursor.place)
        }
        let value = Array(text[cursor.position..<end])
        do throws(JSONError) {
            let element = try parse(value, depth: 0)
            cursor.move(to: rest.startIndex)
            return element
        } catch { throw self.error(error, in: value, at: cursor.place) }
    }

    private func forEachItem(
        of text: [UInt8],
        startingAt start: TextPosition,
        end: Int,
        _ body: (Item) throws -> Void
    ) throws {
        // The array, and the object that it may be in, are not part of the documents' own depth.
        let (root, isDeep): (JSONElement, Bool)
        do throws(JSONError) {
            (root, isDeep) = try JSONElement.scanningParts(text, limits: Self.limits(depth: 2))
        } catch {
            if error.reason == .trailingBytes,
                let first = try? parse(Array(text.prefix(error.offset)), depth: 2),
                first[0]?["_rev"] != nil
            {
                // couchbackup prints one array a line.
                throw FileShape.dump(name)
            }
            if let array, error.reason == .trailingBytes {
                throw LoveseatError(
                    .invalidParameter,
                    "\(name) is not one JSON object with an array \"\(array)\": values one after another are read without --array"
                )
            }
            throw self.error(error, in: text, at: start)
        }
        let kind = isKeyed ? "object" : "array"
        guard let found = array.map({ root[$0] }) ?? root, found.kind == (isKeyed ? .object : .array) else {
            throw LoveseatError(
                .invalidJSON,
                "\(name) has no \(kind)\(array.map { " \"\($0)\"" } ?? "")"
            )
        }
        var (place, offset) = (start, 0)
        func read(_ element: JSONElement, id: String?) throws {
            let first = element.bytes.startIndex
            place.advance(over: text[offset..<first])
            offset = first
            let item = Item(
                id: id,
                element: element,
                place: "\(name), \(place)",
                end: end - text.count + element.bytes.endIndex
            )
            let levels = JSONLimits.standard.maximumDepth
            guard !isDeep || !element.isNested(deeperThan: levels) else {
                throw LoveseatError(
                    .invalidJSON,
                    "\(item.place): it has more than \(levels) levels of arrays and objects"
                )
            }
            try body(item)
        }
        if isKeyed {
            for (key, value) in found.members { try read(value, id: key) }
            return
        }
        for (index, item) in found.items.enumerated() {
            if index == 0 { try checkOrigin(of: item) }
            try read(item, id: nil)
        }
    }

    /// Refuses a file whose first object is not a document.
    private func checkShape(of element: JSONElement, isOnlyOne: Bool) throws {
        try checkOrigin(of: element)
        if FileShape.isDump(element) { throw FileShape.dump(name) }
        if isOnlyOne, !hasIDField, element["_id"] == nil, element["id"] == nil {
            try FileShape.checkOnlyObject(element, name)
        }
    }

    /// Refuses what a CouchDB lists about documents.
    private func checkOrigin(of element: JSONElement) throws {
        if FileShape.isRow(element) { throw FileShape.dump(name) }
        if FileShape.isChange(element) { throw FileShape.changes(name) }
    }

    private func parse(_ bytes: [UInt8], depth: Int) throws(JSONError) -> JSONElement {
        try JSONElement(scanning: bytes, limits: Self.limits(depth: depth))
    }

    private static func limits(depth: Int) -> JSONLimits {
        JSONLimits(
            maximumDepth: JSONLimits.standard.maximumDepth + depth,
            maximumBytes: maximumBytes,
            refusesDuplicateKeys: true
        )
    }

    private func error(_ error: JSONError, in text: some Sequence<UInt8>, at place: TextPosition)
        -> LoveseatError
    {
        LoveseatError(error, in: text, of: name, startingAt: place)
    }
}

extension UInt8 {
    fileprivate var isBlank: Bool { [0x20, 0x09, 0x0A, 0x0D].contains(self) }
}

/// Lines of a file, and a position in them.
private struct Cursor {
    private(set) var text: [UInt8]
    /// The position, in bytes of the text.
    private(set) var position = 0
    /// The same position in the file.
    private(set) var place: TextPosition

    init(_ line: [UInt8], number: Int) { (text, place) = (line, TextPosition(line: number)) }

    var isAtEnd: Bool { position == text.count }
    /// How many bytes of the text are behind the position.
    var rest: Int { text.count - position }

    /// Skips what is blank at the beginning of the text.
    mutating func skipBlanks() {
        if position == 0, let start = text.firstIndex(where: { !$0.isBlank }), start > 0 {
            move(to: start)
            trim()
        }
    }

    mutating func move(to position: Int) {
        place.advance(over: text[self.position..<position])
        self.position = position
    }

    /// Moves to the end, where the place is of no interest.
    mutating func moveToEnd() { position = text.count }

    /// Removes what is before the position.
    mutating func trim() {
        text.removeFirst(position)
        position = 0
    }

    mutating func append(_ line: [UInt8]) {
        text.append(0x0A)
        text += line
    }
}

/// Finds where an object that is not validated yet ends.
private struct ValueEnd {
    private var position: Int
    private var depth = 0
    private(set) var isInString = false
    private var isEscaped = false
    private var found: Int?

    init(position: Int) { self.position = position }

    /// The position behind the object; nil if it is not complete. The text only grows from call to call.
    mutating func end(in text: [UInt8]) -> Int? {
        while found == nil, position < text.count {
            let byte = text[position]
            position += 1
            if isInString {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isInString = false
                }
                continue
            }
            switch byte {
            case UInt8(ascii: "\""): isInString = true
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                depth -= 1
                if depth <= 0 { found = position }
            default: break
            }
        }
        return found
    }
}

/// The lines of a file, which is read in pieces.
private struct LineReader {
    let file: FileSource
    let maximumBytes: Int
    let piece: Int
    private var buffer: [UInt8] = []
    private var start = 0
    private var isAtEnd = false
    private var isAtStart = true
    /// How many bytes of the file were read into the buffer.
    private var readCount = 0
    /// The position in the file behind the last line, in bytes.
    var position: Int { readCount - (buffer.count - start) }
    /// The number of the last line that was read, from 1.
    private(set) var number = 0

    init(file: FileSource, maximumBytes: Int, piece: Int) {
        self.file = file
        self.maximumBytes = maximumBytes
        self.piece = piece
    }

    /// The next line that is not blank; nil after the last.
    mutating func nextText() throws -> [UInt8]? {
        while let line = try next() {
            if line.contains(where: { !$0.isBlank }) { return line }
        }
        return nil
    }

    /// The next line without its end; nil after the last.
    mutating func next() throws -> [UInt8]? {
        var looked = start
        while true {
            if let end = lineEnd(from: looked) {
                defer { start = end + 1 }
                number += 1
                return Array(buffer[start..<end])
            }
            looked = buffer.count
            if isAtEnd {
                guard start < buffer.count else { return nil }
                defer { start = buffer.count }
                number += 1
                return Array(buffer[start...])
            }
            looked -= start
            try fill()
        }
    }

    private func lineEnd(from start: Int) -> Int? {
        buffer.withUnsafeBytes { buffer in
            guard let base = buffer.baseAddress,
                let found = memchr(base + start, CInt(UInt8(ascii: "\n")), buffer.count - start)
            else { return nil }
            return UnsafeRawPointer(found) - base
        }
    }

    /// The rest of the file.
    mutating func rest() throws -> [UInt8] {
        while !isAtEnd { try fill() }
        defer { start = buffer.count }
        return Array(buffer[start...])
    }

    var tooLong: LoveseatError {
        LoveseatError(
            .invalidJSON,
            "\(file.name), \(TextPosition(line: number + 1)): a document or an array of more than \(maximumBytes) bytes: write one document a line"
        )
    }

    private mutating func fill() throws {
        buffer.removeFirst(start)
        start = 0
        guard let data = try file.read(upToCount: piece) else { return isAtEnd = true }
        buffer.append(contentsOf: data)
        readCount += data.count
        if isAtStart, buffer.count > 2 {
            isAtStart = false
            // Programs of Windows put a byte order mark before the text.
            if buffer.starts(with: [0xEF, 0xBB, 0xBF]) { buffer.removeFirst(3) }
        }
        guard buffer.count <= maximumBytes else { throw tooLong }
    }
}
