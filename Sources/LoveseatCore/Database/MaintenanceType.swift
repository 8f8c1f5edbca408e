import LoveseatModel
import LoveseatStorage

/// The kinds of maintenance that ``Database/performMaintenance(type:)`` performs.
public enum MaintenanceType: UInt8, Hashable, Sendable, CaseIterable {
    /// Removes blobs that no document refers to, and returns free space to the file system.
    case compact
    /// Rebuilds the indexes.
    case reindex
    /// Verifies everything that is stored, blobs included, and throws `corruptData` if something is damaged.
    case integrityCheck
    /// Updates outdated statistics that SQLite plans queries with.
    case optimize
    /// Updates all statistics that SQLite plans queries with.
    case fullOptimize
}

extension MaintenanceType {
    func perform(on store: DocumentStore) throws {
        switch self {
        case .compact: _ = try store.compact()
        case .reindex: try store.reindex()
        case .optimize: try store.optimize(isFull: false)
        case .fullOptimize: try store.optimize(isFull: true)
        case .integrityCheck:
            let problems = try store.check()
            if let first = problems.first {
                throw LoveseatError(
                    .corruptData,
                    "\(problems.count.counted("problem")), the first: \(first)"
                )
            }
        }
    }
}
