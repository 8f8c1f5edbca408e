import Crypto
import LoveseatCouchDBReplication
import LoveseatModel

/// The documents of one database of a CouchDB, made from the recordings of a real one (protocol/couchdb.md).
///
/// All leaves stay until somebody deletes them. Revisions come whole, or not at all.
struct ScriptedCouchDatabase {
    struct Attachment: Hashable {
        var type: String
        var content: [UInt8]
        var generation: Int
    }

    struct Node {
        var parent: RevisionID?
        var isDeleted = false
        /// Without names that begin with an underscore; nil if only the name of the revision came.
        var body: JSONValue?
        var attachments: [String: Attachment] = [:]
    }

    struct Document {
        var nodes: [RevisionID: Node] = [:]
        var sequence = 0
        /// A mistake: revisions are compared as text.
        var comparesText = false

        var leaves: [RevisionID] {
            let parents = Set(nodes.values.compactMap(\.parent))
            return nodes.keys.filter { !parents.contains($0) }
        }

        /// The leaves, the winner first: what is alive before what is deleted, and then the higher.
        var ranked: [RevisionID] {
            leaves.sorted { one, other in
                let (first, second) = (nodes[one]?.isDeleted == true, nodes[other]?.isDeleted == true)
                if first != second { return second }
                return comparesText ? one.text > other.text : ScriptedCouchDatabase.isHigher(one, other)
            }
        }

        /// A revision and its ancestors, the newest first.
        func line(_ id: RevisionID) -> [RevisionID] {
            var line: [RevisionID] = []
            var next: RevisionID? = id
            while let id = next, let node = nodes[id] {
                line.append(id)
                next = node.parent
            }
            return line
        }

        /// Forgets what is deeper than so many revisions below every leaf.
        mutating func prune(_ limit: Int) {
            let kept = Set(leaves.flatMap { line($0).prefix(limit) })
            nodes = nodes.filter { kept.contains($0.key) }
            for (id, node) in nodes {
                if let parent = node.parent, nodes[parent] == nil { nodes[id]?.parent = nil }
            }
        }
    }

    /// A revision as a client writes it.
    struct Incoming {
        let id: String
        /// The newest first.
        let history: [RevisionID]
        let isDeleted: Bool
        let body: JSONValue
        /// The attachments, without those that are stubs.
        var attachments: [String: Attachment]
        /// Where a stub's content was attached; nil if it does not say so.
        let stubs: [String: Int?]
    }

    struct Refusal: Error {
        let status: Int
        let error: String
        let reason: String
    }

    var documents: [String: Document] = [:]
    var sequence = 0
    var locals: [String: (revision: Int, body: JSONValue)] = [:]
    var revisionLimit = 1_000
    /// A mistake: revisions are compared as text.
    var comparesText = false
    /// The documents that changed since somebody asked.
    var changed: Set<String> = []

    /// The order of revisions: by generation, and then by bytes, of which 32 hexadecimal digits are 16.
    static func isHigher(_ one: RevisionID, _ other: RevisionID) -> Bool {
        if one.generation != other.generation { return one.generation > other.generation }
        return bytes(of: other).lexicographicallyPrecedes(bytes(of: one))
    }

    private static func bytes(of id: RevisionID) -> [UInt8] {
        let text = Array(id.digest.utf8)
        if text.count != 32 { return text }
        let digits = text.compactMap { Character(UnicodeScalar($0)).hexDigitValue }
        if digits.count != 32 { return text }
        return stride(from: 0, to: 32, by: 2).map { UInt8(digits[$0] * 16 + digits[$0 + 1]) }
    }

    static func digest(_ content: [UInt8]) -> String {
        "md5-" + Base64.encode(Array(Insecure.MD5.hash(data: content)))
    }

    // MARK: Writing

    /// Adds revisions as they are; all or none.
    mutating func merge(_ revisions: [Incoming]) throws(Refusal) {
        var changed = self
        for revision in revisions { try changed.mergeOne(revision) }
        // Of a batch, documents get sequences in the order of their IDs.
        for id in Set(revisions.map(\.id)).sorted(by: { $0.utf8.lexicographicallyPrecedes($1.utf8) })
        where changed.documents[id]?.nodes.count != documents[id]?.nodes.count {
            changed.sequence += 1
            changed.documents[id]?.sequence = changed.sequence
            changed.documents[id]?.prune(revisionLimit)
            changed.changed.insert(id)
        }
        self = changed
    }

    private mutating func mergeOne(_ revision: Incoming) throws(Refusal) {
        guard let newest = revision.history.first else {
            throw Refusal(status: 400, error: "bad_request", reason: "no revision")
        }
        var document = documents[revision.id] ?? Document(comparesText: comparesText)
        if document.nodes[newest] != nil { return }
        var attachments = revision.attachments
        for (name, generation) in revision.stubs {
            let known = revision.history.compactMap { document.nodes[$0]?.attachments[name] }.first
            guard let known, generation == nil || generation == .some(known.generation) else {
                throw Refusal(
                    status: 412,
                    error: "missing_stub",
                    reason: "Invalid attachment stub in \(revision.id) for \(name)"
                )
            }
            attachments[name] = known
        }
        for (index, id) in revision.history.enumerated() {
            let parent = index + 1 < revision.history.count ? revision.history[index + 1] : nil
            if index > 0, var known = document.nodes[id] {
                // Another client knew less of the line.
                if known.parent == nil, let parent { known.parent = parent }
                document.nodes[id] = known
                if known.parent == nil || document.nodes[known.parent ?? id] != nil { break }
                continue
            }
            document.nodes[id] = Node(parent: parent)
        }
        document.nodes[newest]?.isDeleted = revision.isDeleted
        document.nodes[newest]?.body = revision.body
        document.nodes[newest]?.attachments = attachments
        documents[revision.id] = document
    }

    /// Forgets what replaced revisions said.
    mutating func compact() {
        for (id, document) in documents {
            let leaves = Set(document.leaves)
            for revision in document.nodes.keys where !leaves.contains(revision) {
                documents[id]?.nodes[revision]?.body = nil
            }
        }
    }

    // MARK: Reading

    /// A revision as it is answered. `since`: revisions whose attachments the client has; nil for stubs only.
    func json(_ id: String, _ revision: RevisionID, revisions: Bool, since: [RevisionID]? = nil) -> JSONValue?
    {
        guard let document = documents[id], let node = document.nodes[revision], var value = node.body else {
            return nil
        }
        value["_id"] = .string(id)
        value["_rev"] = .string(revision.text)
        if node.isDeleted { value["_deleted"] = true }
        let line = document.line(revision)
        if revisions {
            value["_revisions"] = [
                "start": JSONValue(Int(revision.generation)),
                "ids": .array(line.map { .string(String($0.digest)) }),
            ]
        }
        if node.attachments.isEmpty { return value }
        let common = since.map { since in line.first { since.contains($0) }.map { Int($0.generation) } ?? 0 }
        var attachments: JSONValue = [:]
        for (name, attachment) in node.attachments {
            var entry: JSONValue = [
                "content_type": .string(attachment.type), "revpos": JSONValue(attachment.generation),
                "digest": .string(Self.digest(attachment.content)),
            ]
            if let common, attachment.generation > common {
                entry["data"] = .string(Base64.encode(attachment.content))
            } else {
                entry["stub"] = true
                entry["length"] = JSONValue(attachment.content.count)
            }
            attachments[name] = entry
        }
        value["_attachments"] = attachments
        return value
    }
}
