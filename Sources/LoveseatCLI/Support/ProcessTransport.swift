import Foundation
import Loveseat

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
        try child.run()
        process = ChildProcess(child)
        // Foundation closes its own descriptors when the pipes are released.
        pipes = try await SocketTransport(
            input: fcntl(output.fileHandleForReading.fileDescriptor, F_DUPFD_CLOEXEC, 0),
            output: fcntl(input.fileHandleForWriting.fileDescriptor, F_DUPFD_CLOEXEC, 0)
        )
    }

    func send(_ bytes: [UInt8]) async throws { try await pipes.send(bytes) }
    func receive() async throws -> [UInt8]? { try await pipes.receive() }

    /// Closes the pipes, so that the child ends. If it does not, it is terminated.
    func close() async {
        await pipes.close()
        process.end()
    }

    /// A `Process`, of which only thread-safe calls are used.
    private final class ChildProcess: @unchecked Sendable {
        private static let patience = 5.0
        private let process: Process
        init(_ process: Process) { self.process = process }

        func end() {
            DispatchQueue.global().asyncAfter(deadline: .now() + Self.patience) { [self] in
                if process.isRunning { process.terminate() }
            }
        }
    }
}
