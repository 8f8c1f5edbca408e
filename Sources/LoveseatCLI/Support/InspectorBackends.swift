import Foundation
import Loveseat
import LoveseatDiscovery
import LoveseatInspector

/// The inspector's backend in the process that serves the database.
struct ServingBackend: InspectorBackend {
    let database: Database
    let monitor: PeerMonitor

    func peers(after event: Int) async throws -> JSONValue? { await monitor.report(after: event) }

    func pending(over key: String) async throws -> JSONValue? { try await monitor.pending(over: key) }

    func perform(_ edit: InspectorEdit) async throws -> RevisionID {
        let database = database
        return try await Reading.run { try edit.perform(on: database) }
    }
}

/// The inspector's backend in any other process: asks the one that serves the database, if there is one.
struct ControlBackend: InspectorBackend {
    /// The database, as a command's argument names it.
    let database: String

    private var argument: DatabaseArgument {
        var argument = DatabaseArgument()
        argument.database = database
        return argument
    }

    func peers(after event: Int) async throws -> JSONValue? { try await ask(.peers(after: event)) }

    func pending(over key: String) async throws -> JSONValue? { try await ask(.pending(peer: key)) }

    /// The answer of the process that serves the database; nil if there is none.
    private func ask(_ request: ControlRequest) async throws -> JSONValue? {
        let folder = argument.folder
        let reply = try await Reading.run { try ControlClient.reply(to: request, folder: folder) }
        return try reply.map { try JSONValue(parsing: $0) }
    }

    func perform(_ edit: InspectorEdit) async throws -> RevisionID {
        let folder = argument.folder
        return try await Reading.run {
            guard let reply = try ControlClient.reply(to: .edit(edit), folder: folder) else {
                return try performHere(edit)
            }
            guard let revision = RevisionID(reply) else {
                throw LoveseatError(.remoteError, "the process that serves the database gave no revision")
            }
            return revision
        }
    }

    /// Opens the database for this edit only, so that `serve` can be started meanwhile.
    private func performHere(_ edit: InspectorEdit) throws -> RevisionID {
        let database = try argument.open()
        let revision = try edit.perform(on: database)
        try database.close()
        return revision
    }
}

/// The inspector of a command, and the database that it reads.
struct InspectorPage {
    private let inspector: Inspector
    private let database: Database

    /// Opens the page, and prints its address.
    init(
        _ argument: DatabaseArgument,
        _ backend: any InspectorBackend,
        _ discovery: DiscoveryOptions,
        port: Int
    ) async throws {
        // A second connection, so that pages never make a writer wait.
        database = try argument.read()
        let (type, method, interfaces) = (discovery.type, discovery.method, discovery.interfaceNames)
        inspector = Inspector(database, backend: backend) {
            try PeerBrowser(type: type, method: method, interfaces: interfaces)
        }
        try Output.standard.line(try await inspector.start(port: port))
        try Output.standard.flush()
    }

    func close() async {
        await inspector.stop()
        // This connection only reads: what fails here loses nothing.
        try? await database.close()
    }
}
