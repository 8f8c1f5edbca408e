import Foundation
import Loveseat
import LoveseatInspector

/// A request of another process to the one that has a database open for writing.
enum ControlRequest {
    case showPairing(name: String?, seconds: Double)
    case forgetPeer(fingerprint: String)
    /// A report of the connections, with the events after a number.
    case peers(after: Int)
    /// The documents that are pending at a connected peer, by the peer's key in that report.
    case pending(peer: String)
    case edit(InspectorEdit)

    init?(_ json: JSONValue) {
        if let seconds = json["showPairing"]?.double, (1...86_400).contains(seconds) {
            self = .showPairing(name: json["name"]?.string, seconds: seconds)
        } else if let fingerprint = json["forgetPeer"]?.string {
            self = .forgetPeer(fingerprint: fingerprint)
        } else if let number = json["peers"]?.int {
            self = .peers(after: number)
        } else if let key = json["pending"]?.string {
            self = .pending(peer: key)
        } else if let edit = json["edit"],
            let edit = try? InspectorEdit(
                JSONElement(parsing: Array(edit.description.utf8), limits: .envelope)
            )
        {
            self = .edit(edit)
        } else {
            return nil
        }
    }

    var json: JSONValue {
        switch self {
        case .showPairing(let name, let seconds):
            ["showPairing": JSONValue(seconds), "name": name.map { .string($0) } ?? .null]
        case .forgetPeer(let fingerprint): ["forgetPeer": .string(fingerprint)]
        case .peers(let number): ["peers": JSONValue(number)]
        case .pending(let key): ["pending": .string(key)]
        case .edit(let edit): ["edit": edit.json]
        }
    }
}

/// A line of a reply.
enum ControlLine {
    case output(String)
    case remark(String)
}

/// A socket in the database's folder, for the folder's owner alone. Requests and replies are JSON, one per line.
final class ControlServer: Sendable {
    typealias Answer = @Sendable (ControlRequest, (ControlLine) throws -> Void) async throws -> Void

    private let listener: Int32
    private let folder: String
    /// The maximum length of a request or a reply, in bytes: a document fits. Only the folder's owner can connect.
    fileprivate static let maximumBytes = 32 << 20

    init(folder: String, answer: @escaping Answer) throws {
        self.folder = folder
        // This process has locked the folder, so an existing socket belongs to a process that has ended.
        unlink("\(folder)/\(ControlAddress.name)")
        let address = try ControlAddress(folder: folder)
        listener = try address.withSocket { descriptor, pointer, length in
            guard bind(descriptor, pointer, length) == 0,
                chmod("\(folder)/\(ControlAddress.name)", 0o600) == 0, listen(descriptor, 8) == 0
            else { throw ControlAddress.failure("listen at", folder) }
        }
        let listener = listener
        Thread.detachNewThread { Self.acceptConnections(at: listener, answer) }
    }

    /// The errors of an accept that lacks a resource, such as a file descriptor. The server waits, and tries again.
    private static let shortages = [EMFILE, ENFILE, ENOBUFS, ENOMEM]

    /// Accepts connections until ``close()`` is called.
    private static func acceptConnections(at listener: Int32, _ answer: @escaping Answer) {
        var isShort = false
        while true {
            let connection = accept(listener, nil, nil)
            if connection >= 0 {
                isShort = false
                Thread.detachNewThread { serve(connection, answer) }
                continue
            }
            let reason = errno
            if reason == EINTR || reason == ECONNABORTED { continue }
            // `close` has ended the socket.
            guard shortages.contains(reason) else { return }
            if !isShort {
                isShort = true
                Output.remark(
                    "loveseat: requests of other `loveseat` processes have to wait: \(String(cString: strerror(reason)))"
                )
            }
            // The listener is ready all the time; only its end ends the wait early.
            var ended = pollfd(fd: listener, events: 0, revents: 0)
            poll(&ended, 1, 100)
        }
    }

    /// Accepts no more requests.
    func close() {
        unlink("\(folder)/\(ControlAddress.name)")
        shutdown(listener, Int32(SHUT_RDWR))
    }

    private static func serve(_ connection: Int32, _ answer: @escaping Answer) {
        // Do not wait for a client that connects and sends nothing.
        var patience = timeval(tv_sec: 10, tv_usec: 0)
        setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        var lines = SocketLines(connection, maximumBytes: maximumBytes)
        guard let line = lines.next(), let json = try? JSONValue(parsing: line, limits: .envelope),
            let request = ControlRequest(json)
        else {
            let error = LoveseatError(
                .unsupported,
                "the process that has the database open does not understand the request: use the same version of `loveseat` for both"
            )
            refuse(error, over: connection)
            Foundation.close(connection)
            return
        }
        Task {
            defer { Foundation.close(connection) }
            do {
                try await answer(request) { line in
                    switch line {
                    case .output(let text): try SocketLines.write(["output": .string(text)], to: connection)
                    case .remark(let text): try SocketLines.write(["remark": .string(text)], to: connection)
                    }
                }
                try SocketLines.write(["done": true], to: connection)
            } catch {
                let error = (error as? LoveseatError) ?? LoveseatError(.unexpectedError, "\(error)")
                refuse(error, over: connection)
            }
        }
    }

    private static func refuse(_ error: LoveseatError, over connection: Int32) {
        let json: JSONValue = [
            "error": .string(error.message), "code": JSONValue(error.code.value),
            "domain": .string(error.code.domain.rawValue),
        ]
        // The client may have been interrupted, and be gone.
        try? SocketLines.write(json, to: connection)
    }
}

/// Sends a request to the process that has a database open.
enum ControlClient {
    /// Sends a request, and prints the reply.
    ///
    /// - Throws: `busy` if that process accepts no requests (only `serve` does); otherwise its error, or the one of the connection.
    static func ask(_ request: ControlRequest, folder: String) throws {
        guard let connection = try connection(to: folder) else { throw notServing(folder) }
        defer { Foundation.close(connection) }
        Signals.onInterrupt {
            // The reply ends, and so does this process.
            shutdown(connection, Int32(SHUT_RDWR))
        }
        try SocketLines.write(request.json, to: connection)
        var lines = SocketLines(connection, maximumBytes: ControlServer.maximumBytes)
        while let line = lines.next() {
            switch try parsed(line, folder) {
            case .output(let text):
                try Output.standard.line(text)
                try Output.standard.flush()
            case .remark(let text): Output.remark(text)
            case nil: return
            }
        }
        if let signal = Signals.interruption { throw Interrupted(signal: signal) }
        throw ended(folder)
    }

    /// Sends a request, and returns the output of the reply. This blocks the thread for up to 30 seconds.
    ///
    /// - Returns: nil if no process accepts requests.
    static func reply(to request: ControlRequest, folder: String) throws -> String? {
        guard let connection = try connection(to: folder) else { return nil }
        defer { Foundation.close(connection) }
        // Interruptions are looked for each second.
        var patience = timeval(tv_sec: 1, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(connection, SOL_SOCKET, option, &patience, socklen_t(MemoryLayout<timeval>.size))
        }
        try SocketLines.write(request.json, to: connection)
        var lines = SocketLines(connection, maximumBytes: ControlServer.maximumBytes, timeouts: 30)
        var output = ""
        while let line = lines.next() {
            switch try parsed(line, folder) {
            case .output(let text): output += text
            case .remark: break
            case nil: return output
            }
        }
        if let signal = Signals.interruption { throw Interrupted(signal: signal) }
        guard lines.isLate else { throw ended(folder) }
        throw LoveseatError(
            .timeout,
            "the process that has \(folder) open does not answer: is it stopped or overloaded?"
        )
    }

    /// The errors of a socket that is not there, or whose process has ended.
    private static let absences = [ENOENT, ECONNREFUSED].map { LoveseatError.Code(Int($0), domain: .posix) }

    /// - Returns: nil if no process accepts requests.
    private static func connection(to folder: String) throws -> Int32? {
        do {
            return try ControlAddress(folder: folder).withSocket { descriptor, pointer, length in
                guard connect(descriptor, pointer, length) == 0 else {
                    throw ControlAddress.failure("connect to", folder)
                }
            }
        } catch let error as LoveseatError where absences.contains(error.code) { return nil }
    }

    static func notServing(_ folder: String) -> LoveseatError {
        LoveseatError(
            .busy,
            "\(folder) is open in another process, which is not `loveseat serve`: stop it first"
        )
    }

    /// A line of a reply; nil for the last one.
    ///
    /// - Throws: the other process's error; `remoteError` for a line that is not known.
    private static func parsed(_ line: String, _ folder: String) throws -> ControlLine? {
        let json = try? JSONValue(parsing: line)
        if let text = json?["output"]?.string { return .output(text) }
        if let text = json?["remark"]?.string { return .remark(text) }
        if json?["done"]?.bool == true { return nil }
        guard let json, let message = json["error"]?.string else {
            throw LoveseatError(
                .remoteError,
                "the process that has \(folder) open gave a reply that is not known here: use the same version of `loveseat` for both"
            )
        }
        let domain = json["domain"]?.string.flatMap { LoveseatError.Domain(rawValue: $0) }
        throw LoveseatError(.init(json["code"]?.int ?? 10, domain: domain ?? .couchbaseLite), message)
    }

    private static func ended(_ folder: String) -> LoveseatError {
        LoveseatError(.busy, "the process that has \(folder) open ended before it replied")
    }
}

/// A command was interrupted by a signal.
struct Interrupted: Error { let signal: Int32 }

/// The address of the socket. Its path may be too long for an address, so it is opened relative to the folder's descriptor.
private struct ControlAddress {
    static let name = "control"
    let path: String
    private let directory: Int32

    init(folder: String) throws {
        directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else { throw Self.failure("open", folder) }
        #if os(Linux)
        path = "/proc/self/fd/\(directory)/\(Self.name)"
        #else
        path = "\(folder)/\(Self.name)"
        #endif
    }

    static func failure(_ action: String, _ folder: String) -> LoveseatError {
        let reason = errno
        return LoveseatError(
            .init(Int(reason), domain: .posix),
            "cannot \(action) \(folder)/\(name): \(String(cString: strerror(reason)))"
        )
    }

    func withSocket(
        _ body: (Int32, UnsafePointer<sockaddr>, socklen_t) throws -> Void
    ) throws -> Int32 {
        defer { close(directory) }
        #if os(Linux)
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        #else
        let kind = SOCK_STREAM
        #endif
        let descriptor = socket(AF_UNIX, kind, 0)
        guard descriptor >= 0 else { throw Self.failure("open", path) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let fits = withUnsafeMutableBytes(of: &address.sun_path) { place in
            guard path.utf8.count < place.count else { return false }
            place.copyBytes(from: path.utf8)
            return true
        }
        do {
            guard fits else {
                errno = ENAMETOOLONG
                throw Self.failure("open", path)
            }
            try withUnsafePointer(to: &address) { pointer in
                try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    try body(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
            return descriptor
        } catch {
            close(descriptor)
            throw error
        }
    }
}

/// The lines that arrive over a socket.
private struct SocketLines {
    private let descriptor: Int32
    private let maximumBytes: Int
    /// How often the socket may time out.
    private let timeouts: Int
    /// Whether nothing came for too long.
    private(set) var isLate = false
    private var buffer: [UInt8] = []
    /// How many bytes were searched for a line's end.
    private var searched = 0

    init(_ descriptor: Int32, maximumBytes: Int, timeouts: Int = 1) {
        self.descriptor = descriptor
        self.maximumBytes = maximumBytes
        self.timeouts = timeouts
    }

    /// The next line; nil at the end, when it is too long, or when nothing came for too long or until an interrupt.
    mutating func next() -> String? {
        var silences = 0
        while true {
            if let end = buffer[searched...].firstIndex(of: UInt8(ascii: "\n")) {
                defer {
                    buffer.removeFirst(end + 1)
                    searched = 0
                }
                return String(decoding: buffer[..<end], as: UTF8.self)
            }
            searched = buffer.count
            guard buffer.count < maximumBytes else { return nil }
            var piece = [UInt8](repeating: 0, count: 16 << 10)
            let count = read(descriptor, &piece, piece.count)
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN {
                silences += 1
                if silences < timeouts, Signals.interruption == nil { continue }
                isLate = true
            }
            guard count > 0 else { return nil }
            buffer += piece[..<count]
        }
    }

    static func write(_ json: JSONValue, to descriptor: Int32) throws {
        let bytes = Array((json.description + "\n").utf8)
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes {
                Foundation.write(descriptor, $0.baseAddress.map { $0 + written }, bytes.count - written)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                throw LoveseatError(.ioError, "the process that sent the request has ended")
            }
            written += count
        }
    }
}
