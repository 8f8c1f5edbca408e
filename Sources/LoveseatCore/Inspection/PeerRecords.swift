package import LoveseatModel
import LoveseatStorage

/// The peers with which a database has replicated, for tools.
package struct PeerRecords {
    private let database: Database

    package init(_ database: Database) { self.database = database }

    /// The addresses of the remote databases that this one has replicated with, the latest one first.
    package func remotes(limit: Int) throws -> [String] {
        try DocumentStore.wrapping {
            try database.store.read { try $0.knownRemotes(limit: limit).map { $0.address } }
        }
    }

    /// The peers of earlier connections, as the process that serves the database has recorded them; nil if there are none.
    package func connections() throws -> JSONValue? {
        let text = try DocumentStore.wrapping { try database.store.read { try $0.info(Self.key) } }
        // A damaged record counts as none: the process that serves the database writes it anew.
        return text.flatMap { try? JSONValue(parsing: $0) }
    }

    /// Records the peers of earlier connections.
    package func record(_ peers: JSONValue) throws {
        try DocumentStore.wrapping {
            try database.store.write(within: database.config.busyTimeout) {
                try $0.setInfo(Self.key, peers.description)
            }
        }
    }

    private static let key = "recorded_peers"
}
