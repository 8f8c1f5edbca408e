package import LoveseatModel

/// The release of Couchbase Lite whose behaviour is modelled.
package enum LiteRelease: Hashable, Sendable {
    /// 4.0.4.
    case release40
    /// 4.1.0.
    case release41
}

/// A local write that failed.
package struct LiteWriteError: Error, Hashable, Sendable {
    /// The code in the domain LiteCore.
    package let code: Int
    /// The reason in words.
    package let reason: String
}

/// A database of Couchbase Lite 4: a store of documents with version vectors, with the rules of the original and its mistakes
/// (version-vectors.md, with the corrections after recordings).
///
/// It has no clock, no randomness and no sockets of its own. ``LiteSession`` replicates it, in either role.
package final class LiteDatabase {
    /// A collection.
    package struct Collection: Sendable {
        /// The documents, tombstones too.
        package var documents: [String: LiteDocument] = [:]
        /// The sequence of the last change.
        package var lastSequence: UInt64 = 0
    }

    /// A peer's checkpoint.
    struct StoredCheckpoint {
        var body: JSONObject
        var revision: Int
    }

    /// The author of the database's versions. It is also its public UUID.
    package let source: SourceID
    package let release: LiteRelease
    /// Whether it is a database of revision trees, which knows no vectors.
    package var hasTrees = false
    /// Reads the system's clock, in nanoseconds since 1970.
    package var wall: () -> UInt64
    /// Chooses the time of the next own version of a document; nil takes the clock's. Replays say what was recorded.
    package var chooseTime: (_ id: String) -> UInt64? = { _ in nil }
    /// The collections by path, such as `_default` or `scope.name`.
    package var collections: [String: Collection] = ["_default": Collection()]
    /// The contents of blobs, by digest.
    package var blobs: [String: [UInt8]] = [:]
    /// The checkpoints that peers have stored here, by their IDs.
    var peerCheckpoints: [String: StoredCheckpoint] = [:]
    /// The own checkpoints of replications that this database began, by their IDs.
    var ownCheckpoints: [String: LiteCheckpoint] = [:]
    private var remoteNumbers: [String: Int] = [:]
    /// The clock of the handle that the app has. It does not see what the replicator sees.
    private var appClock = HybridClock()
    private var replicatorClock = HybridClock()

    package init(_ source: SourceID, _ release: LiteRelease = .release40, wall: @escaping () -> UInt64) {
        (self.source, self.release, self.wall) = (source, release, wall)
    }

    /// Creates a database with a copy of another one's files. It is the same author.
    package init(copying other: LiteDatabase) {
        (source, release, wall) = (other.source, other.release, other.wall)
        (hasTrees, collections, blobs) = (other.hasTrees, other.collections, other.blobs)
        (peerCheckpoints, ownCheckpoints) = (other.peerCheckpoints, other.ownCheckpoints)
        remoteNumbers = other.remoteNumbers
    }

    /// Closes and opens the database: its clocks forget what they saw.
    package func reopen() {
        appClock = HybridClock()
        replicatorClock = HybridClock()
    }

    /// Returns the documents of a collection.
    package func documents(in collection: String = "_default") -> [String: LiteDocument] {
        collections[collection]?.documents ?? [:]
    }

    /// Returns the number of a remote database, by its address.
    func remoteNumber(of address: String) -> Int {
        if let number = remoteNumbers[address] { return number }
        let number = remoteNumbers.count + 1
        remoteNumbers[address] = number
        return number
    }

    // MARK: Edits

    /// Saves a document with new properties.
    ///
    /// - Throws: ``LiteWriteError`` if the own version that is replaced is too far ahead of the clock.
    @discardableResult
    package func edit(_ id: String, _ body: JSONObject, in collection: String = "_default")
        throws(LiteWriteError) -> LiteRevision
    {
        try write(id, isDeleted: false, body, in: collection)
    }

    /// Deletes a document.
    ///
    /// - Throws: ``LiteWriteError`` if there is none, or as ``edit(_:_:in:)``.
    @discardableResult
    package func delete(_ id: String, in collection: String = "_default")
        throws(LiteWriteError) -> LiteRevision
    {
        guard let document = documents(in: collection)[id], !document.current.isDeleted else {
            throw LiteWriteError(code: 7, reason: "not found")
        }
        return try write(id, isDeleted: true, [:], in: collection)
    }

    /// Removes a document with all that is known of it.
    package func purge(_ id: String, in collection: String = "_default") {
        collections[collection]?.documents[id] = nil
    }

    private func write(_ id: String, isDeleted: Bool, _ body: JSONObject, in collection: String)
        throws(LiteWriteError) -> LiteRevision
    {
        let old = documents(in: collection)[id]
        let vector = try edited(old?.current.vector ?? VersionVector(), id)
        var document = old ?? LiteDocument(LiteRevision(.vector(vector), body: nil), sequence: 0)
        if let legacy = old?.current.legacyID { document.lastLegacy = legacy }
        document.liveSize = isDeleted ? old?.current.body.map(FleeceSize.of) : nil
        document.current = LiteRevision(.vector(vector), isDeleted: isDeleted, body: body)
        document.isTreeRecord = false
        store(document, id, in: collection)
        return document.current
    }

    /// Stores a document at the next sequence.
    func store(_ document: LiteDocument, _ id: String, in collection: String) {
        var document = document
        let sequence = (collections[collection]?.lastSequence ?? 0).addingSaturated(1)
        document.sequence = sequence
        collections[collection]?.lastSequence = sequence
        collections[collection]?.documents[id] = document
    }

    // MARK: Clocks

    /// The vector of an edit (version-vectors.md §7.1).
    func edited(_ vector: VersionVector, _ id: String) throws(LiteWriteError) -> VersionVector {
        let tooFar = LiteWriteError(code: 5, reason: "Document version vector contains invalid timestamp")
        do {
            if let time = chooseTime(id) { return try vector.edited(by: source, at: time) }
            // Couchbase Lite shows the clock the own previous version, and fails where it is too far ahead.
            if let own = vector.time(of: source) { try appClock.see(own, wall: wall()) }
            return try vector.edited(by: source, at: appClock.now(wall: wall()))
        } catch { throw tooFar }
    }

    /// The vector of a merge (version-vectors.md §7.2); nil if the states cannot be merged.
    func merged(_ one: VersionVector, _ other: VersionVector, _ id: String) -> VersionVector? {
        if let time = chooseTime(id) {
            return try? VersionVector.merge(one, other, by: source, at: time)
        }
        for version in [one.current, other.current].compactMap({ $0 }) {
            do { try appClock.see(version.time, wall: wall()) } catch { return nil }
        }
        return try? VersionVector.merge(one, other, by: source, at: appClock.now(wall: wall()))
    }

    /// Shows the replicator's clock what a vector names of others.
    func see(_ vector: VersionVector) throws(VersionError) {
        var clock = replicatorClock
        for version in vector.versions where version.source != source && version.source != .revisionTree {
            try clock.see(version.time, wall: wall())
        }
        replicatorClock = clock
    }
}
