import Foundation
import Loveseat

/// The documents of an import that replace others, until everything was read. Of an ID that comes again only the last one counts, so that
/// importing the same file again changes nothing. Much text waits in a temporary file.
struct ReplacingDocuments {
    /// The number that may wait. Their IDs are in memory.
    static let maximumCount = 500_000
    private static let maximumBuffer = 8 << 20
    private static let readPiece = 1 << 20

    private struct Entry {
        let offset: UInt64
        let textLength: Int
        let placeLength: Int
    }

    private var entries: [Loveseat.Collection: [ExactText: Entry]] = [:]
    private(set) var count = 0
    private var file: FileHandle?
    /// The bytes that are not in the file yet. They begin at the offset `written`.
    private var buffer: [UInt8] = []
    private var written: UInt64 = 0

    /// Adds a document.
    ///
    /// - Returns: whether one with this ID was waiting, which it takes the place of.
    mutating func add(
        _ id: String,
        in collection: Loveseat.Collection,
        _ text: ArraySlice<UInt8>,
        _ place: String
    )
        throws -> Bool
    {
        let entry = Entry(
            offset: written + UInt64(buffer.count),
            textLength: text.count,
            placeLength: place.utf8.count
        )
        buffer += text
        buffer += place.utf8
        let old = entries[collection, default: [:]].updateValue(entry, forKey: ExactText(id))
        if old == nil { count += 1 }
        if buffer.count >= Self.maximumBuffer { try writeBuffer() }
        return old != nil
    }

    /// Removes a document, because a later one with its ID is what the database has.
    ///
    /// - Returns: whether one was waiting.
    mutating func remove(_ id: String, in collection: Loveseat.Collection) -> Bool {
        guard count > 0, entries[collection]?.removeValue(forKey: ExactText(id)) != nil else { return false }
        count -= 1
        return true
    }

    /// Calls `body` with each document, in the order in which they came.
    func forEach(
        _ body: (_ id: String, Loveseat.Collection, _ text: [UInt8], _ place: String) throws -> Void
    ) throws {
        var all: [(collection: Loveseat.Collection, id: String, entry: Entry)] = []
        all.reserveCapacity(count)
        for (collection, entries) in entries {
            for (id, entry) in entries { all.append((collection, id.text, entry)) }
        }
        all.sort { $0.entry.offset < $1.entry.offset }
        var (piece, start): ([UInt8], UInt64) = ([], 0)
        for (collection, id, entry) in all {
            let length = entry.textLength + entry.placeLength
            if entry.offset + UInt64(length) > start + UInt64(piece.count) {
                (piece, start) = try read(entry.offset, length)
            }
            let bytes = piece[Int(entry.offset - start)...].prefix(length)
            let place = String(decoding: bytes.suffix(entry.placeLength), as: UTF8.self)
            try body(id, collection, Array(bytes.prefix(entry.textLength)), place)
        }
    }

    /// Returns a piece that contains at least so many bytes from an offset on, and the offset at which the piece begins.
    private func read(_ offset: UInt64, _ length: Int) throws -> ([UInt8], start: UInt64) {
        guard offset < written, let file else { return (buffer, written) }
        do {
            try file.seek(toOffset: offset)
            let bytes = try file.read(upToCount: max(length, Self.readPiece)) ?? Data()
            guard bytes.count >= length else { throw CocoaError(.fileReadCorruptFile) }
            return (Array(bytes), offset)
        } catch { throw Self.failure(error) }
    }

    private mutating func writeBuffer() throws {
        do {
            let file = try self.file ?? Self.temporaryFile()
            self.file = file
            try file.seekToEnd()
            try file.write(contentsOf: Data(buffer))
        } catch { throw Self.failure(error) }
        written += UInt64(buffer.count)
        buffer = []
    }

    /// A file that is gone when it is closed.
    private static func temporaryFile() throws -> FileHandle {
        let url = FileManager.default.temporaryDirectory
            .appendingPathComponent("loveseat-import-\(UUID().uuidString)")
        guard
            FileManager.default.createFile(
                atPath: url.path,
                contents: nil,
                attributes: [.posixPermissions: 0o600]
            )
        else { throw CocoaError(.fileWriteUnknown) }
        // A file that keeps its name stays in the temporary folder, and is readable by its owner only.
        defer { try? FileManager.default.removeItem(at: url) }
        return try FileHandle(forUpdating: url)
    }

    private static func failure(_ error: any Error) -> LoveseatError {
        LoveseatError(
            .ioError,
            "documents that wait in \(FileManager.default.temporaryDirectory.path) cannot be kept: \(error.localizedDescription)"
        )
    }
}
