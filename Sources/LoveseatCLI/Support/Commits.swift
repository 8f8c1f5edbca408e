import Loveseat

/// Commits of this process and of others, which SQLite does not report.
enum Commits {
    /// How often to look for them.
    private static let lookEvery = Duration.milliseconds(100)

    /// Calls a closure at once and after commits, until there is an interrupt.
    ///
    /// - Throws: what the closure throws; `Output.Gone` when standard output is not read any more.
    static func follow(_ collection: Loveseat.Collection, _ body: () async throws -> Void) async throws {
        let isOver = Signals.whenInterrupted()
        var version: Int?
        while !isOver() {
            try Output.standard.checkReader()
            let now = try DatabaseInspection(collection.database).dataVersion()
            if now != version {
                version = now
                try await body()
            }
            try await Task.sleep(for: lookEvery)
        }
    }
}
