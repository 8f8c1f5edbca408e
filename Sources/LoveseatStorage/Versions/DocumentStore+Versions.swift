package import LoveseatModel
private import Synchronization

extension StoreReadTransaction {
    /// The database's name as an author of versions; nil if it makes none.
    package var source: SourceID? { catalogView.versions?.author.source }
}

extension DocumentStore {
    /// The database's name as an author of versions; nil if it makes none.
    package var source: SourceID? { catalog.withLock { $0.versions?.author.source } }

    /// Lets every edit have a version from now on, in this process and later. Does nothing if that is so already.
    ///
    /// The first session with a peer that has version vectors calls this.
    ///
    /// - Returns: The database's name as an author of versions.
    /// - Throws: `notWriteable` if the database is open for reading only; an error of the disk.
    @discardableResult
    package func beginVersions() throws -> SourceID {
        if let source { return source }
        return try write(durably: true) { try $0.versionTable.begin() }
    }
}
