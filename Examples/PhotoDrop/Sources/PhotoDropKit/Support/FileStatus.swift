#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// What the file system says about a file.
struct FileStatus: Hashable {
    enum Kind: Hashable {
        case file, folder, other
    }

    let kind: Kind
    let size: Int
    /// When it was written, in seconds and nanoseconds.
    let modified: [Int]

    /// Nil if the file does not exist or cannot be looked at.
    init?(path: String, followsLinks: Bool) {
        var status = stat()
        guard (followsLinks ? stat(path, &status) : lstat(path, &status)) == 0 else { return nil }
        kind =
            switch status.st_mode & S_IFMT {
            case S_IFREG: .file
            case S_IFDIR: .folder
            default: .other
            }
        size = Int(status.st_size)
        #if canImport(Darwin)
        modified = [status.st_mtimespec.tv_sec, status.st_mtimespec.tv_nsec]
        #else
        modified = [status.st_mtim.tv_sec, status.st_mtim.tv_nsec]
        #endif
    }
}
