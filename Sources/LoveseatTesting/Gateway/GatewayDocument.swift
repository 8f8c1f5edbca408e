import LoveseatModel

/// A document of the gateway's twin: one line of revisions, with what remains of branches that it revived over.
struct GatewayDocument: Sendable {
    struct Revision: Sendable {
        var parent: String?
        /// The versions that the document had with this revision; empty if it had none.
        var vector = VersionVector()
        var isDeleted = false
        /// Nil for revisions that came only as a part of a history, and for content that is gone.
        var body: JSONObject?
        /// By name: `content_type`, `digest`, `length`, `revpos`, `stub`.
        var attachments: [String: JSONObject] = [:]
        var channels: Set<String> = []
        /// Whether the gateway's memory holds it.
        var isCached = false
    }

    /// When a document left a channel, and with which revision.
    struct Removal: Hashable, Sendable {
        let sequence: Int
        let revision: String
        let version: Version?
        let isDeleted: Bool
    }

    let id: String
    var sequence = 0
    var current = ""
    var revisions: [String: Revision] = [:]
    /// The channels that the document is in, or was; nil for those it is in.
    var channels: [String: Removal?] = [:]
    /// When it was in each.
    var memberships: [String: [GatewayDatabase.Period]] = [:]
    /// The channels that it grants, with the sequence since when, by user or `role:` and role.
    var grantedChannels: [String: [String: Int]] = [:]
    /// The roles that it grants, in the same way.
    var grantedRoles: [String: [String: Int]] = [:]
    /// The bytes of its attachments, by digest.
    var attachments: [String: [UInt8]] = [:]
    /// It was saved with `_exp`.
    var expires = false

    var leaf: Revision? { revisions[current] }
    var isDeleted: Bool { leaf?.isDeleted ?? false }

    /// Whether somebody with these channels sees it now.
    func isVisible(to access: [String: Int]) -> Bool {
        access["*"] != nil || channels.contains { $0.value == nil && access[$0.key] != nil }
    }

    /// Whether somebody with these channels may read this revision's content.
    func isReadable(_ revision: Revision, by access: [String: Int]) -> Bool {
        access["*"] != nil || revision.channels.contains { access[$0] != nil }
    }

    /// The line below a revision, newest first.
    func ancestors(of revision: String) -> [String] {
        var line: [String] = []
        var next = revisions[revision]?.parent
        while let id = next, let found = revisions[id] {
            line.append(id)
            next = found.parent
        }
        return line
    }

    /// The revision that is current where branches are allowed: a live one before a tombstone, then the highest.
    var winner: String {
        let parents = Set(revisions.values.compactMap(\.parent))
        let leaves = revisions.filter { !parents.contains($0.key) }
        func rank(_ id: String, _ revision: Revision) -> (Int, UInt32, String) {
            (revision.isDeleted ? 0 : 1, RevisionID(id)?.generation ?? 0, id)
        }
        return leaves.max { rank($0.key, $0.value) < rank($1.key, $1.value) }?.key ?? current
    }

    mutating func forgetCache() {
        for id in revisions.keys { revisions[id]?.isCached = false }
    }

    /// Keeps so many revisions of the current line, and removes the older ones. Revisions off that line stay.
    mutating func prune(to depth: Int) {
        let line = [current] + ancestors(of: current)
        // Most documents have fewer revisions.
        guard line.count > depth, let last = line.prefix(depth).last else { return }
        for id in line.dropFirst(depth) { revisions[id] = nil }
        revisions[last]?.parent = nil
    }
}
