import LoveseatBLIP
package import LoveseatModel

/// The versions of a database of Sync Gateway 4: its source and its clock (version-vectors.md §15).
struct GatewayVersions: Sendable {
    private var author: VersionAuthor
    /// Reads the system's clock, in nanoseconds since 1970.
    let wall: @Sendable () -> UInt64

    init(_ author: VersionAuthor, wall: @escaping @Sendable () -> UInt64) {
        (self.author, self.wall) = (author, wall)
    }

    /// The name of the database in versions.
    var source: SourceID { author.source }

    /// Returns the vector of a write by the gateway itself: the previous current version is one of the previous versions now, and so are merge
    /// versions, except one with its source (version-vectors.md §7.1, §15). It does not see the times of clients.
    mutating func edited(_ vector: VersionVector) -> VersionVector {
        do throws(VersionError) { return try author.edit(vector, wall: wall()) } catch {
            preconditionFailure("a simulated clock is at the end of all times: \(error)")
        }
    }
}

extension GatewayDatabase {
    /// Has the database give versions from now on, as Sync Gateway 4 does. Its documents have none until they are written. A database that gives
    /// versions already goes on under another source, as a bucket that was made anew does.
    ///
    /// `wall`: reads the system's clock, in nanoseconds since 1970.
    ///
    /// - Throws: `VersionError` if the source is the one that stands for revision trees.
    package mutating func beginVersions(by source: SourceID, wall: @escaping @Sendable () -> UInt64)
        throws(VersionError)
    {
        versions = GatewayVersions(try VersionAuthor(source), wall: wall)
    }

    /// The source of the gateway's own versions; nil if it gives none.
    package var source: SourceID? { versions?.source }

    /// Returns the vector of a document's current revision, which is empty if it has none; nil if there is no document.
    package func vector(of id: String, in path: String = "_default") -> VersionVector? {
        keyspaces[Self.keyspace(path)]?.documents[id]?.vector
    }

    // MARK: Pushed states

    /// Whether a pushed state is to be stored; false if it is here, or part of what is here.
    ///
    /// - Throws: `ReplyError` if it is in conflict with the document.
    func isNews(_ state: StateHistory, over document: GatewayDocument?) throws(ReplyError) -> Bool {
        guard let document, let pushed = state.vector.current else { return true }
        let own = document.implicitVector
        guard let current = own.current else { return true }
        if own.covers(pushed) { return false }
        if state.vector.covers(current) { return true }
        let (merged, ownMerged) = (state.vector.mergeVersions, own.mergeVersions)
        // The contents are not compared.
        if state.vector.isMerge, own.isMerge, merged == ownMerged { return true }
        // The newest revision of the list that is known here must be the current one.
        let known = state.revisions.first { document.revisions[$0.text] != nil }
        if let known, known.text == document.current { return true }
        throw Self.conflict
    }

    /// The vector of a revision that is being saved over a document.
    mutating func vector(of write: Write, over document: GatewayDocument?) -> VersionVector {
        let own = document?.vector ?? VersionVector()
        let replaced = options.keepsImplicitVersions ? document?.implicitVector ?? own : own
        guard versions != nil else { return VersionVector() }
        guard let state = write.state else {
            let edited = versions?.edited(replaced)
            return compacted(edited ?? own)
        }
        // The entries that the pushed vector lacks are added.
        if !state.vector.isEmpty { return compacted(state.vector.including(replaced)) }
        guard let version = state.revisions.first?.encodedVersion else { return own }
        let edited = try? own.edited(by: version.source, at: version.time)
        return compacted(edited ?? VersionVector(version))
    }

    /// A vector without its oldest previous versions: of more than five, those that are older than the window are left out, until three are left
    /// (version-vectors.md §7.5).
    private func compacted(_ vector: VersionVector) -> VersionVector {
        guard vector.previous.count > 5, let wall = versions?.wall() else { return vector }
        let oldest = wall.subtractingSaturated(options.versionPruningWindow)
        var room = vector.previous.count - 3
        // The last ones are the oldest.
        let kept = vector.previous.reversed().filter { version in
            if room <= 0 || version.time >= oldest { return true }
            room -= 1
            return false
        }
        let currents = vector.versions.prefix(vector.versions.count - vector.previous.count)
        do throws(VersionError) {
            return try VersionVector(currents + kept, currentCount: currents.count)
        } catch { preconditionFailure("a part of a vector is not a vector: \(error)") }
    }
}

extension GatewayDocument {
    /// The vector of the current revision; empty for a document that nobody has written since the gateway gives versions.
    var vector: VersionVector { leaf?.vector ?? VersionVector() }

    /// The vector, or the one that a document without stands for: the version that stands for its revision in the tree.
    var implicitVector: VersionVector {
        if !vector.isEmpty { return vector }
        return RevisionID(current)?.encodedVersion.map { VersionVector($0) } ?? vector
    }

    /// The name of the current revision for a client with versions: its version, or its ID.
    var currentName: String { vector.current?.text ?? current }
}
