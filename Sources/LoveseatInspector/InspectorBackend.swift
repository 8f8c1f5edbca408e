package import LoveseatModel

/// The process that may write to the database, which may be this one or another one.
package protocol InspectorBackend: Sendable {
    /// The report of the process that serves the database (``ConnectionTable/report(after:at:)``); nil if there is none.
    func peers(after event: Int) async throws -> JSONValue?
    /// The documents that are pending at a connected peer (``PeerMonitor/pending(over:)``); nil if no process serves the database.
    func pending(over key: String) async throws -> JSONValue?
    /// Changes the database.
    ///
    /// - Returns: The document's revision afterwards.
    func perform(_ edit: InspectorEdit) async throws -> RevisionID
}
