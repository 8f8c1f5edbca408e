import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatStorage
import Testing

/// A folder that is gone when the test is over.
final class Scratch: Sendable {
    let path: String

    init() throws {
        path = FileManager.default.temporaryDirectory.appending(path: "loveseat-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    var config: DatabaseConfiguration { DatabaseConfiguration(directory: path) }

    func database(_ name: String) throws -> Database { try Database(name: name, config: config) }
}

extension LoveseatCore.Collection {
    /// Every document's ID, revision and text.
    func contents() throws -> [String: String] {
        let store = try openStore
        var found: [String: String] = [:]
        try store.read { view in
            try view.changes(in: handle, since: 0) { record in
                found[record.id] =
                    "\(record.revision) \(record.isDeleted ? "deleted" : record.body.canonical.description)"
                return true
            }
        }
        return found
    }
}

/// Requires an error with a code.
func expectError(
    _ code: LoveseatError.Code,
    at location: SourceLocation = #_sourceLocation,
    _ body: () throws -> some Any
) {
    let error = #expect(throws: LoveseatError.self, sourceLocation: location) { _ = try body() }
    #expect(error?.code == code, sourceLocation: location)
}
