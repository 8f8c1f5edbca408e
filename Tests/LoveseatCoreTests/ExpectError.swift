import LoveseatModel
import Testing

/// Requires an error with a code.
func expectError(
    _ code: LoveseatError.Code,
    at location: SourceLocation = #_sourceLocation,
    _ body: () throws -> some Any
) {
    _ = error(code, at: location, body)
}

/// Requires the error for text that is not JSON, with a reason and a place.
func expectJSONError(
    _ problem: JSONError,
    at location: SourceLocation = #_sourceLocation,
    _ body: () throws -> some Any
) {
    #expect(error(.invalidJSON, at: location, body)?.jsonError == problem, sourceLocation: location)
}

private func error(
    _ code: LoveseatError.Code,
    at location: SourceLocation,
    _ body: () throws -> some Any
) -> LoveseatError? {
    let error = #expect(throws: LoveseatError.self, sourceLocation: location) { _ = try body() }
    #expect(error?.code == code, sourceLocation: location)
    return error
}
