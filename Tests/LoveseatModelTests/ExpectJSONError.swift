import LoveseatModel
import Testing

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
