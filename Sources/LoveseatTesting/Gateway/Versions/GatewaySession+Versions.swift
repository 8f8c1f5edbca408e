import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatModel

/// A connection of a client with versions (version-vectors.md §11, §15).
extension GatewaySession {
    /// Whether revisions are named by versions.
    var speaksVersions: Bool { negotiated == .mobile4 }

    /// The state in a pushed `rev`; nil from a client with trees.
    func pushedState(_ properties: MessageProperties) throws(ReplyError) -> StateHistory? {
        let revision = properties["rev"] ?? ""
        guard revision.contains("@"), speaksVersions else {
            guard RevisionID(revision) != nil else { throw ReplyError("HTTP", 400, "Invalid revision ID") }
            return speaksVersions ? try Self.state(revision, properties["history"]) : nil
        }
        return try Self.state(revision, properties["history"])
    }

    private static func state(_ revision: String, _ history: String?) throws(ReplyError) -> StateHistory {
        do throws(VersionError) { return try StateHistory(rev: revision, history: history) } catch {
            throw ReplyError("HTTP", 422, "error extracting hlv from blip message: \(error)")
        }
    }

    /// The content that a delta makes of a revision that is here.
    ///
    /// - Throws: `ReplyError` if deltas are not taken, or this one cannot be applied.
    func content(_ delta: JSONValue, over base: String, of document: GatewayDocument?) throws(ReplyError)
        -> JSONValue
    {
        guard database.options.takesDeltas else {
            throw ReplyError("HTTP", 400, "Deltas are disabled for this peer")
        }
        let named = document?.revisions.first { id, revision in
            id == base || (revision.vector.current?.text == base && speaksVersions)
        }
        guard let revision = named?.value, var body = revision.body else {
            throw ReplyError("HTTP", 422, "the base of a delta is unknown")
        }
        guard !revision.isDeleted else { throw ReplyError("HTTP", 422, "the base of a delta is a tombstone") }
        if !revision.attachments.isEmpty {
            body["_attachments"] = .object(JSONObject(revision.attachments.mapValues { .object($0) }))
        }
        do { return try JSONDelta.apply(delta, to: .object(body)) } catch {
            throw ReplyError("HTTP", 422, "a delta cannot be applied")
        }
    }

    // MARK: Proposals

    /// The answer to a proposal from a client with versions (version-vectors.md §11.2).
    func versionedVerdict(on proposal: JSONValue, over document: GatewayDocument?, namesCurrent: Bool)
        -> JSONValue
    {
        let (text, parent) = (proposal[1]?.string ?? "", proposal[2]?.string ?? "")
        let vector = try? VersionVector(text)
        let version = vector?.current
        guard !text.contains("@") || version != nil else { return 500 }
        guard let document else { return 0 }
        let conflict: JSONValue =
            namesCurrent ? ["status": 409, "rev": .string(document.currentName)] : 409
        guard let vector, let version else {
            if document.current == text { return 304 }
            return document.current == parent || (parent.isEmpty && document.isDeleted) ? 0 : conflict
        }
        if document.current == parent {
            return RevisionID(parent)?.encodedVersion == version ? 304 : 0
        }
        guard let current = document.vector.current else { return conflict }
        if (try? RevisionName(first: parent)) == .version(current) { return 0 }
        if document.vector.covers(version) { return 304 }
        if current.source == version.source, current.time < version.time { return 0 }
        return vector.covers(current) ? 0 : conflict
    }

    // MARK: Announcements

    /// The revisions that a client has, by an item of its answer to `changes`; nil if it does not want the announced one, or if the item is an error.
    /// With a version in it, there is at most one revision ID behind it.
    func knownRevisions(_ item: JSONValue) -> Set<String>? {
        guard let names = item.array?.compactMap(\.string) else { return nil }
        let places = names.indices.filter { names[$0].contains("@") }
        guard !speaksVersions || places.isEmpty || (places == [0] && names.count <= 2) else {
            misunderstood.append("an answer to changes names \(names)")
            return nil
        }
        return Set(names)
    }

    /// The properties `rev` and `history` of a revision that is sent to a client that named these.
    func names(of id: String, in document: GatewayDocument, known: Set<String>, maximumHistory: Int)
        -> (revision: String, history: String)
    {
        let ancestors = document.ancestors(of: id)
        guard speaksVersions, let vector = document.revisions[id]?.vector, let version = vector.current else {
            return (id, Self.history(ancestors, known, maximumHistory).joined(separator: ","))
        }
        let namesTree = known.contains { !$0.contains("@") }
        let line = namesTree ? Self.history([id] + ancestors, known, maximumHistory) : []
        return (version.text, history(of: vector, line))
    }

    /// A vector without its current version, in the spelling of Sync Gateway: without blanks, and in no particular order. Behind it come revisions of the
    /// tree (version-vectors.md §5.1, §11.3).
    private func history(of vector: VersionVector, _ line: [String]) -> String {
        let merged = vector.mergeVersions.shuffled(using: &generator).map(\.text)
        let previous = vector.previous.shuffled(using: &generator).map(\.text)
        if merged.isEmpty { return (previous + line).joined(separator: ",") }
        // Without previous versions, an empty item stands between the semicolon and the tree.
        let isQuirk = previous.isEmpty && !line.isEmpty
        return merged.joined(separator: ",") + (isQuirk ? ";," : ";")
            + (previous + line).joined(separator: ",")
    }

    /// Stops *with* the first revision that the client knows.
    static func history(_ ancestors: [String], _ known: Set<String>, _ maximum: Int) -> [String] {
        var history: [String] = []
        for ancestor in ancestors.prefix(maximum) {
            history.append(ancestor)
            if known.contains(ancestor) { break }
        }
        return history
    }
}

extension GatewayFeedRow {
    /// The name of the revision as a client is told of it.
    func name(isVersioned: Bool) -> String { isVersioned ? version?.text ?? revision : revision }
}
