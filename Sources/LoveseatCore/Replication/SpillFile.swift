import LoveseatAssertions
import LoveseatBLIP
import LoveseatModel
private import LoveseatPlatform

/// The bodies of one connection's received messages that are too much for memory, in a file without a name.
///
/// The file is made when it is first needed, grows to the maximum that is kept in it at one time, is emptied when nothing is kept, and is
/// removed with its last descriptor, however the process ends.
package final class SpillFile: BodySpill {
    private static let blockSize = 32 << 10

    private let folder: String
    private var descriptor: Int32?
    /// The places of each key's bytes, in order.
    private var pieces: [UInt64: [(block: Int, count: Int)]] = [:]
    private var free: [Int] = []
    private var blocks = 0

    /// `folder`: the folder in which the file is made.
    package init(folder: String) { self.folder = folder }

    deinit { if let descriptor { close(descriptor) } }

    package func append(_ bytes: [UInt8], to key: UInt64) throws {
        let file = try descriptor ?? open()
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = rest.prefix(Self.blockSize)
            rest = rest.dropFirst(piece.count)
            let block = free.popLast() ?? blocks
            blocks = max(blocks, block + 1)
            pieces[key, default: []].append((block, piece.count))
            try transfer(piece.count, at: block, "write") { done in
                piece.withUnsafeBytes {
                    pwrite(file, $0.baseAddress.map { $0 + done.count }, $0.count - done.count, done.place)
                }
            }
        }
    }

    package func remove(_ key: UInt64) throws -> [UInt8] {
        guard let found = pieces[key], let file = descriptor else { return [] }
        defer { drop(key) }
        var failure: (any Error)?
        let bytes = [UInt8](unsafeUninitializedCapacity: found.reduce(0) { $0 + $1.count }) {
            buffer,
            filled in
            for piece in found where failure == nil {
                let start = filled
                do {
                    try transfer(piece.count, at: piece.block, "read") { done in
                        pread(
                            file,
                            buffer.baseAddress.map { $0 + start + done.count },
                            piece.count - done.count,
                            done.place
                        )
                    }
                    filled += piece.count
                } catch { failure = error }
            }
        }
        if let failure { throw failure }
        return bytes
    }

    package func drop(_ key: UInt64) {
        // The message was short, or memory sufficed: nothing of it is in the file.
        guard let found = pieces.removeValue(forKey: key) else { return }
        free += found.map(\.block)
        if !pieces.isEmpty { return }
        guard let descriptor else { return impossible("the pieces of \(key) have no file") }
        (free, blocks) = ([], 0)
        ftruncate(descriptor, 0)
    }

    /// Reads or writes a block whole.
    private func transfer(
        _ count: Int,
        at block: Int,
        _ verb: String,
        _ body: ((count: Int, place: off_t)) -> Int
    ) throws {
        var done = 0
        while done < count {
            let moved = body((done, off_t(block * Self.blockSize + done)))
            if moved < 0, errno == EINTR { continue }
            guard moved > 0 else { throw failure(verb) }
            done += moved
        }
    }

    private func open() throws -> Int32 {
        var template = Array("\(folder)/incoming-spill-XXXXXX".utf8CString)
        let made = mkstemp(&template)
        guard made >= 0 else { throw failure("make") }
        unlink(template)
        _ = fcntl(made, F_SETFD, FD_CLOEXEC)
        descriptor = made
        return made
    }

    private func failure(_ verb: String) -> LoveseatError {
        let number = errno == 0 ? EIO : errno
        return LoveseatError(
            .init(Int(number), domain: .posix),
            "cannot \(verb) a temporary file in \(folder): \(String(cString: strerror(number)))"
        )
    }
}
