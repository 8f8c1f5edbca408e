package import LoveseatModel
private import LoveseatPlatform
private import Synchronization

/// Keeps other processes out of a database folder while this process runs.
///
/// The operating system releases the lock when the process ends in any way, so it is never stale.
package final class FolderLock: Sendable {
    private let descriptor: Mutex<Int32>

    /// - Throws: `busy` if another process has the folder; an error of the disk.
    package init(folder: String) throws(LoveseatError) {
        let path = "\(folder)/lock"
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw BlobFiles.failure("open", path) }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            var text = [UInt8](repeating: 0, count: 20)
            let count = pread(descriptor, &text, text.count, 0)
            close(descriptor)
            // A process that only reads leaves the number of the process before it.
            let number = Int32(String(decoding: text.prefix(max(0, count)), as: UTF8.self)) ?? 0
            let isAlive = number > 0 && (kill(number, 0) == 0 || errno == EPERM)
            throw LoveseatError(
                .busy,
                "\(folder) is open in \(isAlive ? "process \(number)" : "another process"): stop that process, or sync with it"
            )
        }
        let text = Array("\(getpid())".utf8)
        ftruncate(descriptor, 0)
        _ = pwrite(descriptor, text, text.count, 0)
        self.descriptor = Mutex(descriptor)
    }

    /// Keeps processes that write out of a folder without writing anything; nil if there is one, or if that is not possible.
    init?(excludingWritersOf folder: String) {
        let descriptor = open("\(folder)/lock", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        guard flock(descriptor, LOCK_SH | LOCK_NB) == 0 else {
            close(descriptor)
            return nil
        }
        self.descriptor = Mutex(descriptor)
    }

    package func release() {
        descriptor.withLock {
            // A closed store has released it already when `deinit` does it again.
            guard $0 >= 0 else { return }
            // A child process that is being started still has the descriptor, so closing ours would keep the lock.
            flock($0, LOCK_UN)
            close($0)
            $0 = -1
        }
    }

    deinit { release() }
}
