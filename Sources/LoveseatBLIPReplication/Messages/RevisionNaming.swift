import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// How the two sides of a session name revisions in their messages.
enum RevisionNaming: Hashable, Sendable {
    /// By their IDs in a tree.
    case trees
    /// By versions, and documents that have none by their IDs in a tree.
    case versions

    /// The property `versioning` of a subscription.
    var versioning: String {
        switch self {
        case .trees: "rev-trees"
        case .versions: "version-vectors"
        }
    }

    /// Whether a subscription with this property may be answered. Older peers with trees leave it out.
    func isNamed(by versioning: String?) -> Bool {
        guard let versioning else { return self == .trees }
        return versioning.isExactly(self.versioning)
    }

    /// Reads the name of a revision that a peer made up; nil if it is not valid, or its generation is too high to go on from.
    func received(_ text: String) -> RevisionName? {
        switch self {
        case .trees: RevisionID(received: text).map { .revision($0) }
        case .versions: (try? RevisionName(text))?.received
        }
    }

    /// Reads the name of a revision that is to be found here, and need not be; nil if it is not valid. Peers with version vectors may name a version
    /// by a whole vector.
    func known(_ text: String) -> RevisionName? {
        switch self {
        case .trees: RevisionID(text).map { .revision($0) }
        case .versions: try? RevisionName(first: text)
        }
    }

    /// Reads an announced or proposed revision, with its whole vector if the peer told it; nil if it is not valid.
    func announced(_ text: String) -> (name: RevisionName, vector: VersionVector?)? {
        switch self {
        case .trees: return RevisionID(received: text).map { (.revision($0), nil) }
        case .versions:
            guard let state = state(text), let name = state.name?.received else { return nil }
            return (name, state.vector.versions.count > 1 ? state.vector : nil)
        }
    }

    /// Reads the name of the revision against which a peer made a delta; nil if it is not valid.
    func base(_ text: String) -> RevisionName? {
        switch self {
        case .trees: received(text)
        case .versions: (try? RevisionName(first: text))?.received
        }
    }

    /// Reads the properties `rev` and `history` of a revision (replication.md §9.1, version-vectors.md §11.3), or says what is wrong with them.
    func history(_ revision: String?, _ history: String?) -> Result<IncomingRevision.History, ReplyError> {
        guard let revision, let name = received(revision) else {
            return .failure(ReplyError("HTTP", 400, "received invalid version ID"))
        }
        switch (self, name) {
        case (.trees, .revision(let id)): return Self.line(id, history ?? "")
        case (.trees, .version), (.versions, _): return Self.state(revision, history)
        }
    }

    private static func line(
        _ revision: RevisionID,
        _ history: String
    ) -> Result<IncomingRevision.History, ReplyError> {
        var line = [revision]
        for part in history.split(separator: ",") {
            guard let ancestor = RevisionID(received: part.drop { $0 == " " }) else {
                return .failure(ReplyError("LiteCore", 4, "received invalid history"))
            }
            line.append(ancestor)
        }
        return .success(.line(line))
    }

    private static func state(
        _ revision: String,
        _ history: String?
    ) -> Result<IncomingRevision.History, ReplyError> {
        let state: StateHistory
        do throws(VersionError) { state = try StateHistory(rev: revision, history: history) } catch {
            return .failure(ReplyError("HTTP", 400, "received invalid history: \(error)"))
        }
        // The revision becomes the child of one behind its vector, and an app's next edits need generations, too.
        guard state.revisions.allSatisfy({ RevisionName.revision($0).received != nil }) else {
            return .failure(ReplyError("HTTP", 400, "received invalid history: a generation is too high"))
        }
        return .success(.state(state))
    }

    /// Reads the current state of a document at the peer; nil if it is not valid, or empty.
    func state(_ text: String) -> StateHistory? {
        switch self {
        case .trees: RevisionID(text).map { StateHistory($0) }
        case .versions: (try? StateHistory(text)).flatMap { $0.isEmpty ? nil : $0 }
        }
    }
}

extension RevisionName {
    /// The name, if a peer may have made it up: the generation of a tree's revision must not be too high to go on from.
    fileprivate var received: RevisionName? {
        guard case .revision(let id) = self, id.generation > ReplicationTuning.highestGenerationReceived
        else {
            return self
        }
        return nil
    }
}

extension [RevisionName] {
    /// The first ones, as many as an answer to `changes` names. A Sync Gateway reads one version with one revision ID behind it, or revision IDs alone. If
    /// there is more, the answer is an error, and the revision does not come (version-vectors.md §15).
    func named(_ tuning: ReplicationTuning) -> [RevisionName] {
        let revisions = filter { $0.treeID != nil }
        guard let first, first.treeID == nil else { return Array(revisions.prefix(tuning.ancestorsNamed)) }
        return [first] + revisions.prefix(1)
    }
}

extension RevisionID {
    /// Reads a revision ID that a peer made up; nil if it is not valid, or its generation is too high to go on from.
    init?(received text: some StringProtocol) {
        self.init(text)
        guard generation <= ReplicationTuning.highestGenerationReceived else { return nil }
    }
}

extension StateHistory {
    /// The vector that goes with the name in a list of changes; nil if it says no more than the name, or is so long that a list of such vectors
    /// would be too large.
    var announcedVector: VersionVector? {
        (2...ReplicationTuning.versionsAnnounced).contains(vector.versions.count) ? vector : nil
    }

    /// The state as an answer to a proposal names it: the vector, or the newest revision of a tree.
    var currentText: String { vector.isEmpty ? rev ?? "" : vector.text }
}
