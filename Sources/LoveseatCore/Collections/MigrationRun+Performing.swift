import LoveseatModel
import LoveseatStorage

/// The parts of a migration, one after the other.
extension MigrationRun {
    private static let call = "migrate"

    /// Changes all documents, and returns how many were changed.
    ///
    /// - Throws: As `migrate` of ``Collection``.
    func perform(
        _ change: @Sendable (inout Document) throws -> Void,
        progress: @Sendable (MigrationStatus) -> Void
    ) async throws -> Int {
        var status = MigrationStatus()
        while true {
            try Task.checkCancellation()
            let next = try await CollectionReader.snapshotOfTask(of: collection) { [status] in
                try self.next($0, status)
            }
            if next.documents.isEmpty { return status.changed }
            let part = self.part(next.documents, behind: next.previous, change)
            status.add(part, changed: try await storeFromTask(part), to: next.left)
            progress(status)
            if let failure = part.failure { throw failure }
        }
    }

    private func storeFromTask(_ part: Part) async throws -> Int {
        let store = try collection.openStore(Self.call)
        let timeout = collection.database.config.busyTimeout
        do {
            return try await store.writeFromTask(within: timeout, call: Self.call) {
                try self.store(part, $0)
            }
        } catch { throw Database.mapped(error) }
    }

    /// Likewise, on this thread.
    func performBlocking(
        _ change: (inout Document) throws -> Void,
        progress: (MigrationStatus) -> Void
    ) throws -> Int {
        var status = MigrationStatus()
        while true {
            let next = try CollectionReader.snapshot(of: collection) { try self.next($0, status) }
            if next.documents.isEmpty { return status.changed }
            let part = self.part(next.documents, behind: next.previous, change)
            let store = try collection.openStore(Self.call)
            let changed = try DocumentStore.wrapping {
                try store.write(within: collection.database.config.busyTimeout) { try self.store(part, $0) }
            }
            status.add(part, changed: changed, to: next.left)
            progress(status)
            if let failure = part.failure { throw failure }
        }
    }
}
