import ArgumentParser
import Foundation
import Loveseat

extension LoveseatError.Code {
    /// A thing that a command would create exists already, or the file that it would write to cannot be created. Only the command line
    /// has this code.
    static let cannotCreate = LoveseatError.Code(-73)
}

extension LoveseatError {
    /// The codes of sysexits.h, as `loveseat --help` lists them.
    var exitCode: Int32 {
        switch code {
        case .notFound, .missingIndex, .unknownHost, .httpNotFound, .cantOpenFile: 66
        case .badDocID, .invalidJSON, .decodingError, .encodingError, .corruptData, .corruptRevisionData,
            .unreadableDatabase, .databaseTooNew, .badRevisionID, .conflict, .crypto, .unexpectedError:
            65
        case .invalidParameter, .invalidURL, .unsupported, .invalidQuery, .invalidQueryParameter: 64
        case .cannotCreate: 73
        case .busy: 75
        // 10507: the peer's disk is full.
        case .ioError, .notWriteable, LoveseatError.Code(10_507): 74
        case .httpAuthRequired, .httpForbidden, .httpProxyAuthRequired, .tlsCertExpired, .tlsCertUntrusted,
            .tlsClientCertRequired, .tlsClientCertRejected, .tlsCertUnknownRoot:
            77
        case .remoteError, .webSocketProtocolError: 76
        case .assertionFailed: 70
        default:
            switch code.domain {
            case .posix where code.value == Int(EACCES) || code.value == Int(EPERM): 77
            case .posix where code.value == Int(EADDRINUSE): 75
            case .posix where [ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG].contains(Int32(code.value)): 66
            case .posix where [ENOSPC, EIO, EROFS].contains(Int32(code.value)): 74
            // A statement that refuses a value, and a value of the wrong kind.
            case .sqlite where [1, 20].contains(code.value & 0xFF): 65
            case .sqlite: 74
            default: 69
            }
        }
    }

    /// The same error, of text or a document that a command was given: what is not allowed in it is bad input (65), and not wrong usage
    /// (64).
    var ofInput: LoveseatError { code == .invalidParameter ? LoveseatError(.invalidJSON, message) : self }

    /// Runs a closure that saves what a command was given.
    ///
    /// - Throws: ``ofInput``
    @discardableResult
    static func ofInput<Result>(_ body: () throws -> Result) throws -> Result {
        do { return try body() } catch let error as LoveseatError { throw error.ofInput }
    }
}

extension LoveseatError {
    /// Another library's error, which nothing has given a code: that of the system, or else a bug. Nil for an error of the parser, and for the
    /// end of a command, which have codes of their own.
    init?(foreign error: any Error) {
        guard !(error is ExitCode), LoveseatCommand.exitCode(for: error) == .failure else { return nil }
        let code = Self.systemCode(of: error)
        self.init(
            code.map { LoveseatError.Code($0, domain: .posix) } ?? .assertionFailed,
            code == nil
                ? "an error that should not reach you, which is a bug: \(error)" : error.localizedDescription
        )
    }

    private static func systemCode(of error: any Error) -> Int? {
        let error = error as NSError
        if error.domain == NSPOSIXErrorDomain { return error.code }
        return (error.userInfo[NSUnderlyingErrorKey] as? any Error).flatMap(systemCode)
    }
}

extension JSONValue {
    /// Adds what has failed to the object that a command prints with `--json`.
    mutating func add(_ error: any Error) {
        let (message, code) =
            switch error {
            case let interrupted as Interrupted: ("interrupted", 128 + interrupted.signal)
            default:
                (error as? LoveseatError ?? LoveseatError(foreign: error)).map { ($0.message, $0.exitCode) }
                    ?? (ArgumentErrors.sentence(for: error), LoveseatCommand.exitCode(for: error).rawValue)
            }
        self["error"] = .string(message)
        self["exitCode"] = JSONValue(Int(code))
    }
}

extension Database {
    /// Creates a query, and throws `notFound` if it names a collection that does not exist.
    func query(_ text: String) throws -> Query {
        do throws(LoveseatError) { return try createQuery(text) } catch {
            guard error.code == .invalidQuery, error.message.hasPrefix("No such collection: ") else {
                throw error
            }
            let name = error.message.split(separator: "\"", omittingEmptySubsequences: false).dropFirst()
                .first
            let nearest = name.flatMap { CollectionName.nearest(to: String($0), in: self) }
            throw LoveseatError.absent(error.message, nearest: nearest)
        }
    }
}
