import LoveseatModel
import Testing

/// Requires an error with a code.
func expectError(
    _ code: LoveseatError.Code,
    at location: SourceLocation = #_sourceLocation,
    _ body: () throws -> some Any
) {
    let error = #expect(throws: LoveseatError.self, sourceLocation: location) { _ = try body() }
    #expect(error?.code == code, sourceLocation: location)
}
