import LoveseatBLIP
package import LoveseatModel

/// A database of the gateway's twin: documents with their channels, users and roles with what they may see, and the one
/// row of sequences that everything is written into.
///
/// A value, so that a test can look at what it was a moment ago. Its rules are those of gateway.md, which were observed,
/// and nothing else.
package struct GatewayDatabase: Sendable {
    /// The options that an administrator configures.
    package struct Options: Sendable {
        /// How many revisions of a document's line are kept.
        package var revisionDepth = 50
        /// Whether the content of a replaced revision that is not cached any more is still there.
        package var keepsOldBodies = true
        /// The maximum number of replications at once; nil for no limit.
        package var maximumReplications: Int?
        /// Whether an administrator may add branches, as 3.3.7 can be told (gateway.md 56). Clients ask for none.
        package var allowsConflicts = false
        /// Whether clients may send deltas, as to the Enterprise Edition.
        package var takesDeltas = false
        /// The age at which versions may be left out of long vectors, in nanoseconds: 30 days (version-vectors.md §7.5).
        package var versionPruningWindow: UInt64 = 30 * 24 * 60 * 60 * 1_000_000_000
        /// Whether the first version of a document includes the one that stands for the revision before it. Where a vector is needed and there is
        /// none, Sync Gateway takes that version; whether it does so here was not read (version-vectors.md §15).
        package var keepsImplicitVersions = true
        /// The name of the cookie of sessions.
        package var sessionCookie = "SyncGatewaySession"
        package init() {}
    }

    /// The time in which a user or document had something: from a sequence, until before another.
    struct Period: Hashable, Sendable {
        var start: Int
        var end: Int?
    }

    /// A collection.
    struct Keyspace: Sendable {
        var documents: [String: GatewayDocument] = [:]
        var syncFunction: SyncFunction
    }

    struct CheckpointKey: Hashable {
        let keyspace: String
        let client: String
    }

    struct Checkpoint: Hashable, Sendable {
        var revision: Int
        var body: JSONObject
    }

    static let defaultKeyspace = "_default._default"

    package var options: Options
    package internal(set) var lastSequence = 0
    package internal(set) var isOnline = true
    var users: [String: GatewayPrincipal] = [:]
    var roles: [String: GatewayPrincipal] = [:]
    var keyspaces: [String: Keyspace] = [:]
    var checkpoints: [CheckpointKey: Checkpoint] = [:]
    /// Nil for a gateway whose documents have no versions.
    var versions: GatewayVersions?

    /// A database with only the default collection.
    package init(sync: @escaping SyncFunction = SyncCall.channelsOfDocument, options: Options = Options()) {
        self.options = options
        keyspaces[Self.defaultKeyspace] = Keyspace(syncFunction: sync)
    }

    /// A database with these collections, by `scope.collection`.
    package init(collections: [String: SyncFunction], options: Options = Options()) {
        self.options = options
        keyspaces = collections.mapValues { Keyspace(syncFunction: $0) }
    }

    /// The collection that a path names, such as `app.one`, or `one` in the default scope.
    static func keyspace(_ path: String) -> String { path.contains(".") ? path : "_default.\(path)" }

    // MARK: Changes by an administrator

    /// Puts another sync function into place. It applies to documents when they are written next.
    package mutating func setSyncFunction(_ function: @escaping SyncFunction, in path: String = "_default") {
        keyspaces[Self.keyspace(path)]?.syncFunction = function
    }

    /// Removes a document without a trace; returns whether there was one.
    package mutating func purge(_ id: String, in path: String = "_default") -> Bool {
        let before = accessOfAll()
        guard keyspaces[Self.keyspace(path)]?.documents.removeValue(forKey: id) != nil else { return false }
        noteChangedAccess(since: before)
        return true
    }

    package mutating func setOnline(_ isOnline: Bool) { self.isOnline = isOnline }

    /// The process ends and starts again: nothing is cached any more.
    package mutating func forgetCache() {
        for path in keyspaces.keys {
            for id in keyspaces[path]?.documents.keys.map({ $0 }) ?? [] {
                keyspaces[path]?.documents[id]?.forgetCache()
            }
        }
    }

    // MARK: Checkpoints

    func checkpoint(_ client: String, in keyspace: String) -> Checkpoint? {
        checkpoints[CheckpointKey(keyspace: keyspace, client: client)]
    }

    /// Saves a checkpoint over the revision that the client names (gateway.md 17–19).
    mutating func saveCheckpoint(
        _ body: JSONObject,
        client: String,
        revision: String,
        in keyspace: String
    ) throws(ReplyError) -> String {
        let key = CheckpointKey(keyspace: keyspace, client: client)
        let number: Int
        if let stored = checkpoints[key] {
            guard revision == "0-\(stored.revision)" else {
                throw ReplyError("HTTP", 409, "Document update conflict")
            }
            number = stored.revision + 1
        } else {
            guard revision.isEmpty else { throw ReplyError("HTTP", 404, "No previous revision to replace") }
            number = 1
        }
        var body = body
        body["_rev"] = nil
        checkpoints[key] = Checkpoint(revision: number, body: body)
        return "0-\(number)"
    }

    /// Removes a checkpoint, as its expiry or an administrator does.
    package mutating func removeCheckpoint(_ client: String, in path: String = "_default") {
        checkpoints[CheckpointKey(keyspace: Self.keyspace(path), client: client)] = nil
    }

    /// Returns the revision and content of a document that a user reads now; nil if the user reads none.
    package func content(of id: String, for user: String, in path: String = "_default") -> (
        revision: String, body: JSONObject
    )? {
        let keyspace = Self.keyspace(path)
        guard let document = keyspaces[keyspace]?.documents[id], !document.isDeleted,
            document.isVisible(to: channels(of: user, in: keyspace)), let body = document.leaf?.body
        else { return nil }
        return (document.current, body)
    }

    /// The documents that a user sees now, with revision and content; tombstones are left out.
    package func visibleDocuments(to user: String, in path: String = "_default") -> [String: (
        revision: String, body: JSONObject
    )] {
        let ids = keyspaces[Self.keyspace(path)]?.documents.keys.map { $0 } ?? []
        return Dictionary(
            uniqueKeysWithValues: ids.compactMap { id in
                content(of: id, for: user, in: path).map { (id, $0) }
            }
        )
    }
}
