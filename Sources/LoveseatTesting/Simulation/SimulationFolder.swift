private import Foundation

/// A folder for the files of one history, which is removed together with this object.
final class SimulationFolder {
    let path: String

    /// Chooses a name that no other history has. `kind`: the kind of history, for people who look into the folder for temporary files.
    init(_ kind: String) {
        path =
            FileManager.default.temporaryDirectory
            .appending(
                path: "loveseat-\(kind)-\(ProcessInfo.processInfo.processIdentifier)-\(UUID().uuidString)"
            ).path
    }

    // The history may have failed before it created the folder.
    deinit { try? FileManager.default.removeItem(atPath: path) }

    func create() throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }
}
