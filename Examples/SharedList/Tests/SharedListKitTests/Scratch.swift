import Foundation
import Loveseat
import SharedListKit

/// A folder that is removed when the test ends, with the stores of several devices.
final class Scratch: Sendable {
    let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)

    deinit { try? FileManager.default.removeItem(at: folder) }

    func store(_ device: String) async throws -> ListStore {
        try await ListStore.open(
            folder: folder.appending(path: device),
            identities: FileIdentityStore(folder: folder.appending(path: "\(device) identities"))
        )
    }
}
