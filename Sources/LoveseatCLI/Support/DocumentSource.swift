import Foundation
import Loveseat

/// The source of documents to import.
struct DocumentSource {
    private let array: String?
    private let file: FileSource
    private var name: String { file.name }

    /// The maximum length of a line, or of a JSON array, in bytes.
    private static let maximumBytes = 256 << 20
    private static let piece = 1 << 20

    init(file path: String, array: String?) throws {
        file = try FileSource(path)
        self.array = array
    }

    /// Calls `body` with each document and where it is, for messages. JSON lines are read one after another.
    func forEach(_ body: (JSONElement, String) throws -> Void) throws {
        var reader = LineReader(file: file, maximumBytes: Self.maximumBytes, piece: Self.piece)
        var number = 0
        while let line = try reader.next() {
            number += 1
            guard let first = line.first(where: { ![0x20, 0x09, 0x0D].contains($0) }) else { continue }
            if first != UInt8(ascii: "{") || array != nil {
                return try forEachItem(of: line + [0x0A] + reader.rest(), startingAt: number, body)
            }
            try body(try parse(line, depth: 0, "line \(number)"), "\(name), line \(number)")
            while let line = try reader.next() {
                number += 1
                guard line.contains(where: { ![0x20, 0x09, 0x0D].contains($0) }) else { continue }
                try body(try parse(line, depth: 0, "line \(number)"), "\(name), line \(number)")
            }
        }
    }

    private func forEachItem(
        of text: [UInt8],
        startingAt line: Int,
        _ body: (JSONElement, String) throws -> Void
    ) throws {
        // The array, and the object that it may be in, are not part of the documents' own depth.
        let root = try parse(text, depth: 2, nil)
        guard let items = array.map({ root[$0] }) ?? root, items.kind == .array else {
            throw LoveseatError(.invalidParameter, "\(name) has no array\(array.map { " \"\($0)\"" } ?? "")")
        }
        for (index, item) in items.items.enumerated() { try body(item, "\(name), item \(index + 1)") }
    }

    private func parse(_ bytes: [UInt8], depth: Int, _ line: String?) throws -> JSONElement {
        let limits = JSONLimits(
            maximumDepth: JSONLimits.standard.maximumDepth + depth,
            maximumBytes: Self.maximumBytes,
            refusesDuplicateKeys: true
        )
        do throws(JSONError) { return try JSONElement(scanning: bytes, limits: limits) } catch {
            let place = line.map { "\(name), \($0)" } ?? name
            let advice = line == "line 1" ? "; if the file is one object, name its array with --array" : ""
            throw LoveseatError(.invalidJSON, "\(place): \(error)\(advice)")
        }
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

    init(file: FileSource, maximumBytes: Int, piece: Int) {
        self.file = file
        self.maximumBytes = maximumBytes
        self.piece = piece
    }

    /// The next line without its end; nil after the last.
    mutating func next() throws -> [UInt8]? {
        var looked = start
        while true {
            if let end = lineEnd(from: looked) {
                defer { start = end + 1 }
                return Array(buffer[start..<end])
            }
            looked = buffer.count
            if isAtEnd {
                guard start < buffer.count else { return nil }
                defer { start = buffer.count }
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

    private mutating func fill() throws {
        buffer.removeFirst(start)
        start = 0
        guard let data = try file.read(upToCount: piece) else { return isAtEnd = true }
        buffer.append(contentsOf: data)
        guard buffer.count <= maximumBytes else {
            throw LoveseatError(
                .invalidJSON,
                "\(file.name): a line or an array of more than \(maximumBytes) bytes: write one document a line"
            )
        }
    }
}
