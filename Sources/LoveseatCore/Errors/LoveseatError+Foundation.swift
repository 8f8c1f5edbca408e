public import Foundation
public import LoveseatModel

extension LoveseatError: LocalizedError {
    /// The error's ``message``, so that `localizedDescription` shows it.
    public var errorDescription: String? { message }
}
