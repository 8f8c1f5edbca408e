import Foundation
import LoveseatModel
import LoveseatStorage

extension CBLError {
    /// The error that apps get for any error of the engine; an app's own errors stay as they are.
    static func converted(_ error: any Error) -> any Error {
        if let error = error as? LoveseatError {
            return make(error.code.value, error.message, domain: error.code.domain.rawValue)
        }
        if DocumentStore.isStorageError(error) { return converted(LoveseatError(storage: error)) }
        return error
    }

    static func make(_ code: Int, _ message: String, domain: String = CBLError.domain) -> NSError {
        NSError(domain: domain, code: code, userInfo: [NSLocalizedDescriptionKey: message])
    }

    /// Runs a closure, and converts the engine's errors.
    static func converting<T>(_ body: () throws -> T) throws -> T {
        do { return try body() } catch { throw converted(error) }
    }
}

/// Ends the program for a mistake in the app, as the API promises for it.
func programmerError(_ message: String, file: StaticString = #fileID, line: UInt = #line) -> Never {
    preconditionFailure(message, file: file, line: line)
}
