import Foundation
import Loveseat

/// A file that is read in pieces.
struct FileSource {
    /// What to call the file in messages.
    let name: String
    private let file: FileHandle

    private static let piece = 256 << 10

    /// `path`: the file; - for standard input.
    init(_ path: String) throws {
        name = path == "-" ? "standard input" : path
        if path == "-" {
            file = .standardInput
        } else {
            guard let opened = FileHandle(forReadingAtPath: path) else {
                throw LoveseatError(.cantOpenFile, "cannot read \(path)")
            }
            file = opened
        }
    }

    /// The next piece; nil at the end.
    func read(upToCount count: Int) throws -> Data? {
        do {
            let data = try file.read(upToCount: count)
            return data?.isEmpty ?? true ? nil : data
        } catch { throw LoveseatError(.ioError, "cannot read \(name): \(error.localizedDescription)") }
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
