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

/// Requires the error for text that is not JSON, with a reason and a place.
func expectJSONError(
    _ problem: JSONError,
    at location: SourceLocation = #_sourceLocation,
    _ body: () throws -> some Any
) {
    let error = #expect(throws: LoveseatError.self, sourceLocation: location) { _ = try body() }
    #expect(error?.code == .invalidJSON, sourceLocation: location)
    #expect(error?.jsonError == problem, sourceLocation: location)
}
