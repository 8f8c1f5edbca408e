import Foundation
import Loveseat
import Observation
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

/// Waits as a view does: reads, and reads again after each change.
@MainActor func watch(until isSeen: @MainActor () -> Bool) async {
    while !Task.isCancelled {
        let (changes, change) = AsyncStream.makeStream(of: Void.self)
        if withObservationTracking(isSeen, onChange: { change.finish() }) { return }
        for await _ in changes {}
    }
}
