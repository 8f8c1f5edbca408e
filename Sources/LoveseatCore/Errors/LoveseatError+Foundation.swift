public import Foundation
public import LoveseatModel

extension LoveseatError: LocalizedError {
    /// The message.
    public var errorDescription: String? { message }
}
