import Foundation
import Loveseat

/// A file that is read in pieces.
struct FileSource {
    /// The file's name in messages.
    let name: String
    private let file: FileHandle
    /// How long the file is; nil for what is not a file.
    private let length: UInt64?

    private static let piece = 256 << 10

    /// `path`: the file; - for standard input.
    init(_ path: String) throws {
        name = path == "-" ? "standard input" : path
        if path == "-" {
            file = .standardInput
        } else {
            if let reason = Self.folder(path) { throw LoveseatError(.cantOpenFile, reason) }
            file = try OptionFile.handle(path)
        }
        // A file whose length is not known, as one that was removed meanwhile, is read without a share.
        let attributes = path == "-" ? nil : try? FileManager.default.attributesOfItem(atPath: path)
        let isFile = attributes?[.type] as? FileAttributeType == .typeRegular
        length = isFile ? attributes?[.size] as? UInt64 : nil
    }

    /// Which share has been read, from 0 to 1; nil if that is not known.
    var share: Double? {
        // Without a position the file is read all the same, and an error of the disk shows there.
        (try? file.offset()).flatMap { share(before: Int(clamping: $0)) }
    }

    /// Which share is before a position, from 0 to 1; nil if that is not known.
    func share(before position: Int) -> Double? {
        guard let length, length > 0 else { return nil }
        return min(Double(position) / Double(length), 1)
    }

    /// Why a folder is not a file to read; nil for what is not a folder.
    private static func folder(_ path: String) -> String? {
        var isFolder: ObjCBool = false
        let files = FileManager.default
        guard files.fileExists(atPath: path, isDirectory: &isFolder), isFolder.boolValue else { return nil }
        if files.fileExists(atPath: "\(path)/db.sqlite3") {
            return
                "\(path) is a database of Couchbase Lite, whose files are not read here: sync with the program that it belongs to"
        }
        if files.fileExists(atPath: "\(path)/db.sqlite") {
            return
                "\(path) is a database of Loveseat: use `loveseat export \(path.shellWord)`, and import what it prints"
        }
        return "\(path) is a folder: name a file"
    }

    /// The next piece, as soon as there is one; nil at the end.
    ///
    /// - Throws: ``Interrupted`` if the command is interrupted while it waits for a terminal or a pipe; `ioError`.
    func read(upToCount count: Int) throws -> Data? {
        var piece = Data(count: count)
        while true {
            try Signals.waitForInput(file.fileDescriptor)
            let got = piece.withUnsafeMutableBytes {
                Foundation.read(file.fileDescriptor, $0.baseAddress, count)
            }
            if got < 0, errno == EINTR { continue }
            guard got >= 0 else {
                throw LoveseatError(.ioError, "cannot read \(name): \(String(cString: strerror(errno)))")
            }
            return got == 0 ? nil : piece.prefix(got)
        }
    }

    /// Calls `body` with each piece of the file.
    func forEachPiece(_ body: ([UInt8]) throws -> Void) throws {
        while let data = try read(upToCount: Self.piece) { try body(Array(data)) }
    }
}

extension Result {
    /// The error; nil for a success.
    var failure: Failure? {
        if case .failure(let error) = self { error } else { nil }
    }
}
