package import LoveseatModel
private import Synchronization

/// The versions that this database makes, and those that it receives (docs/decisions/0015).
extension StoreReadTransaction {
    /// The database's name as an author of versions; nil if it makes none.
    package var source: SourceID? { catalogView.versions?.author.source }
}

extension StoreWriteTransaction {
    /// Lets the database make versions from now on. The transaction must reach the disk, as ``DocumentStore/beginVersions()`` has it.
    func beginVersions() throws {
        if catalog.versions != nil { return }
        let author = try VersionAuthor(SourceID.new(options))
        let versions = StoreVersions(author, limit: ClockReserve.limit(after: 0, wall: wall))
        try versions.save(in: database)
        try OpenNote(boot: options.bootID(), isDurable: isFullSync).save(in: database)
        replaceCatalog { $0.versions = versions }
    }

    /// Calls a closure with the database as an author of versions, and with the system's clock; nil if the database makes no versions.
    ///
    /// What the closure changes takes effect with the transaction.
    package func withAuthor<T>(_ body: (inout VersionAuthor, _ wall: UInt64) throws -> T) rethrows -> T? {
        guard var versions = catalog.versions else { return nil }
        versions.noteMaking(wall: wall)
        let result = try body(&versions.author, wall)
        replaceCatalog { $0.versions = versions }
        return result
    }

    /// Returns the vector of an edit, a deletion or an undeletion of a state; nil if the database makes no versions.
    ///
    /// It never fails because of a clock. The state's versions are earlier, unless their author's clock was ahead and they were never shown to
    /// this clock.
    package func edited(_ vector: @autoclosure () -> VersionVector) throws -> VersionVector? {
        // Most databases make no versions.
        if catalog.versions == nil { return nil }
        let state = vector()
        do throws(VersionError) { return try edit(state) } catch {
            try takeNewSource(.lastTime)
            return try edit(state)
        }
    }

    private func edit(_ vector: VersionVector) throws(VersionError) -> VersionVector? {
        guard var versions = catalog.versions else { return nil }
        versions.noteMaking(wall: wall)
        // The state was accepted when it arrived. If the system's clock was set back since, the edit is earlier than some of it.
        try? versions.author.see(vector, wall: wall)
        let edited = try versions.author.edit(vector, wall: wall).pruned(wall: wall)
        replaceCatalog { $0.versions = versions }
        return edited
    }

    /// Verifies a vector that a peer sent before it is stored, and lets later versions of this database have later times.
    ///
    /// If it names a version by this database that this database does not know, the database was put back to an earlier state, and goes on with
    /// another source: its next version would otherwise hide the unknown one. A peer that may write can provoke this, so it happens once for
    /// each peer and opening.
    ///
    /// - Parameters:
    ///   - vector: The vector as it arrived.
    ///   - known: The vectors of the document that are here; nil if the document is not here.
    ///   - id: The document, for the log.
    ///   - peer: Names the peer; the same for all anonymous ones.
    /// - Throws: ``VersionError`` if a time in the vector is not valid, or too far ahead. Then nothing changes.
    package func accept(
        _ vector: VersionVector,
        over known: (some Sequence<VersionVector>)?,
        of id: String,
        from peer: String
    ) throws {
        guard let before = catalog.versions else {
            var clock = HybridClock()
            return try clock.see(vector, wall: wall)
        }
        var versions = before
        try versions.author.see(vector, wall: wall)
        let source = before.author.source
        if let own = vector.time(of: source) {
            let isIncluded = known?.contains { $0.time(of: source) ?? 0 >= own } ?? true
            if !(isIncluded && before.mayHaveMade(own)), versions.admitsDemand(of: peer) {
                replaceCatalog { $0.versions = versions }
                return try takeNewSource(
                    .unknownVersion(try Version(time: own, source: source), document: id)
                )
            }
        }
        replaceCatalog { $0.versions = versions }
    }

    private func takeNewSource(_ reason: NewSourceReason) throws {
        let source = try SourceID.new(options)
        try replaceCatalog { $0.versions = try $0.versions?.renamed(source) }
        try catalog.versions?.save(in: database)
        newSourceReasons.append(reason)
    }

    /// Reads source and clock from the file again.
    func reloadVersions() throws {
        let versions = try StoreVersions.load(database)
        replaceCatalog { $0.versions = versions }
    }

    /// Saves the clock if this transaction has gone beyond its limit, as one that was shown a time ahead of the system's clock does.
    func saveClock() throws {
        guard var versions = catalog.versions, versions.author.clock.last > versions.limit else { return }
        versions.limit = ClockReserve.limit(after: versions.author.clock.last, wall: 0)
        try versions.save(in: database)
        replaceCatalog { $0.versions = versions }
    }

    /// Notes that a vector is stored, which earlier versions of Loveseat cannot read.
    func noteVectors() throws {
        // They are in the file already, or this transaction has noted it.
        if catalog.storesVectors { return }
        try Schema.noteVectors(in: database)
        replaceCatalog { $0.storesVectors = true }
    }
}

extension DocumentStore {
    /// The database's name as an author of versions; nil if it makes none.
    package var source: SourceID? { catalog.withLock { $0.versions?.author.source } }

    /// Lets every edit have a version from now on, in this process and later. Does nothing if that is so already.
    ///
    /// The first session with a peer that has version vectors calls this.
    ///
    /// - Throws: `notWriteable` if the database is open for reading only; an error of the disk.
    package func beginVersions() throws {
        if source != nil { return }
        try write(durably: true) { try $0.beginVersions() }
    }
}
