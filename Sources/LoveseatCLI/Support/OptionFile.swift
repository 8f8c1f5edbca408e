import Foundation
import Loveseat

/// Files that arguments and options name.
enum OptionFile {
    /// Opens a file for reading.
    ///
    /// - Throws: `cantOpenFile`, with the reason.
    static func handle(_ path: String) throws -> FileHandle {
        FileHandle(fileDescriptor: try descriptor(path), closeOnDealloc: true)
    }

    /// Reads a file.
    ///
    /// `limit`: after how many bytes to stop; somewhat more may be returned.
    ///
    /// - Throws: `cantOpenFile`, with the reason.
    static func contents(_ path: String, limit: Int = .max) throws -> Data {
        let descriptor = try descriptor(path)
        defer { close(descriptor) }
        var contents = Data()
        var piece = [UInt8](repeating: 0, count: 64 << 10)
        while contents.count < limit {
            let count = read(descriptor, &piece, piece.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw failure(path) }
            if count == 0 { break }
            contents += piece[..<count]
        }
        return contents
    }

    private static func descriptor(_ path: String) throws -> Int32 {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure(path) }
        return descriptor
    }

    private static func failure(_ path: String) -> LoveseatError {
        LoveseatError(.cantOpenFile, "cannot read \(path): \(String(cString: strerror(errno)))")
    }
}
