import Foundation
import Loveseat
import Synchronization

/// A child process whose standard input and output are connected to a peer, such as `ssh host loveseat serve-stdio DB`.
final class ProcessTransport: MessageTransport {
    private let process: ChildProcess
    private let pipes: SocketTransport

    /// Starts a command in a shell. Its standard error is passed through.
    init(command: String) async throws {
        let (input, output) = (Pipe(), Pipe())
        let child = Process()
        child.executableURL = URL(filePath: "/bin/sh")
        child.arguments = ["-c", command]
        child.standardInput = input
        child.standardOutput = output
        process = ChildProcess(child)
        try child.run()
        // Foundation closes its own descriptors when the pipes are released.
        pipes = try await SocketTransport(
            input: fcntl(output.fileHandleForReading.fileDescriptor, F_DUPFD_CLOEXEC, 0),
            output: fcntl(input.fileHandleForWriting.fileDescriptor, F_DUPFD_CLOEXEC, 0)
        )
    }

    func send(_ bytes: [UInt8]) async throws {
        do { try await pipes.send(bytes) } catch { throw await process.ending() ?? error }
    }

    func receive() async throws -> [UInt8]? {
        if let bytes = try await pipes.receive() { return bytes }
        // After a normal end of the connection, this error is not looked at.
        if let error = await process.ending() { throw error }
        return nil
    }

    /// Closes the pipes, so that the child ends. If it does not, it is terminated.
    func close() async {
        await pipes.close()
        process.end()
    }

    /// A `Process`, of which only thread-safe calls are used.
    private final class ChildProcess: @unchecked Sendable {
        private static let patience = 5.0
        /// How long a command that has closed its output may take to end, in seconds.
        private static let exitPatience = 2.0
        private let process: Process
        private let exit = Mutex<Exit>(Exit())

        private struct Exit {
            var error: LoveseatError?
            var waiting: [AsyncStream<LoveseatError>.Continuation] = []
        }

        /// The process must not be running yet.
        init(_ process: Process) {
            self.process = process
            process.terminationHandler = { [weak self] process in
                let status = process.terminationStatus
                let how =
                    process.terminationReason == .exit
                    ? "ended with exit status \(status)" : "was ended by signal \(status)"
                self?.ended(LoveseatError(.webSocketAbnormalClose, "the command of exec: \(how)"))
            }
        }

        private func ended(_ error: LoveseatError) {
            let waiting = exit.withLock { exit in
                exit.error = error
                return exit.waiting
            }
            for continuation in waiting {
                continuation.yield(error)
                continuation.finish()
            }
        }

        /// Says how the process ended, which may be a moment after it closed its output; nil if it goes on.
        func ending() async -> LoveseatError? {
            let (endings, continuation) = AsyncStream<LoveseatError>.makeStream()
            let known = exit.withLock { exit in
                if exit.error == nil { exit.waiting.append(continuation) }
                return exit.error
            }
            if let known { return known }
            DispatchQueue.global().asyncAfter(deadline: .now() + Self.exitPatience) { continuation.finish() }
            for await error in endings { return error }
            return nil
        }

        func end() {
            DispatchQueue.global().asyncAfter(deadline: .now() + Self.patience) { [self] in
                if process.isRunning { process.terminate() }
            }
        }
    }
}
