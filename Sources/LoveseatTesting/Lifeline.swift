package import Foundation
import Synchronization

/// Ends programs that tests have started when the tests end without doing so: by a crash, or killed because they took too long.
///
/// A shell waits for the end of a pipe, which comes with the end of this process, whatever ends it.
package final class Lifeline: Sendable {
    private static let ofThisProcess = Mutex<Lifeline?>(nil)

    /// Reads `+ PID` when a program was started and `- PID` when it has ended; in the end ends those that are left.
    private static let script = """
        trap '' HUP INT TERM
        left=' '
        while read -r sign pid; do
            case $sign in
                +) left="$left$pid " ;;
                -) left="${left%% "$pid" *} ${left#* "$pid" }" ;;
            esac
        done
        [ -n "$(echo $left)" ] || exit 0
        kill -TERM $left
        sleep 1
        kill -KILL $left
        """

    private let shell = Process()
    private let pipe = Pipe()
    /// Held while a program starts, so that its end is reported after its beginning.
    private let writing = Mutex(())

    /// - Throws: `TooManyDescriptors`.
    package init() throws {
        try TooManyDescriptors.check()
        shell.executableURL = URL(filePath: "/bin/sh")
        shell.arguments = ["-c", Self.script]
        shell.standardInput = pipe
        shell.standardOutput = FileHandle.nullDevice
        shell.standardError = FileHandle.nullDevice
        _ = fcntl(pipe.fileHandleForWriting.fileDescriptor, F_SETFD, FD_CLOEXEC)
        try shell.run()
    }

    /// Starts a program that ends with this process.
    package static func run(_ program: Process) throws {
        let lifeline = try ofThisProcess.withLock { lifeline in
            let made = try lifeline ?? Lifeline()
            lifeline = made
            return made
        }
        try lifeline.run(program)
    }

    /// Starts a program that ends with this object's ``cut()`` or with this process.
    ///
    /// - Throws: `TooManyDescriptors`, instead of the crash that Foundation's `Process` may answer them with.
    package func run(_ program: Process) throws {
        try TooManyDescriptors.check()
        program.terminationHandler = { [self] program in
            let line = "- \(program.processIdentifier)\n"
            // After `cut()` nobody reads it.
            writing.withLock { _ in _ = try? pipe.fileHandleForWriting.write(contentsOf: Data(line.utf8)) }
        }
        try writing.withLock { _ in
            try program.run()
            let line = "+ \(program.processIdentifier)\n"
            try pipe.fileHandleForWriting.write(contentsOf: Data(line.utf8))
        }
    }

    /// Does what the end of this process does, and waits until the programs have been told to end.
    package func cut() throws {
        try pipe.fileHandleForWriting.close()
        shell.waitUntilExit()
    }
}

/// This process holds so many descriptors that Foundation's `Process` would read beyond its list of them, and might crash.
package struct TooManyDescriptors: Error, CustomStringConvertible {
    /// As many entries of `/proc/self/fd` as one buffer of `readdir` holds for certain (32 kB, at most 32 bytes each), less some for other
    /// threads.
    static let limit = 900

    let open: Int

    package var description: String {
        "\(open) descriptors are open, and Foundation's Process is safe up to \(Self.limit):"
            + " name this suite in `programs` of ./test, so that it runs apart from those that hold many"
    }

    static func check() throws {
        #if os(Linux)
        // A system may have no /proc. Without a free descriptor, starting the program fails by itself.
        guard let list = opendir("/proc/self/fd") else { return }
        defer { closedir(list) }
        var open = 0
        while readdir(list) != nil { open += 1 }
        if open > limit { throw TooManyDescriptors(open: open) }
        #endif
    }
}
