import LoveseatModel

/// Knows which edits the author of each edit had seen, as ``EditOracle`` does, of peers that name one state by revisions or by versions.
///
/// An edit is superseded if another edit went on from a state that rests on it. Of resolutions the oracle only knows less
/// than the peers.
final class VersionOracle {
    private struct Edit {
        let author: Int
        let name: RevisionName
        let isDeleted: Bool
        let body: JSONValue?
        let superseded: Set<Int>
    }

    private struct History {
        var edits: [Edit] = []
        /// The edits on which a state rests, its own included.
        var restsOn: [RevisionName: Set<Int>] = [:]
    }

    private var histories: [String: History] = [:]
    /// Documents that somebody purged: edits may be gone.
    private(set) var purged: Set<String> = []

    /// Somebody edited a document. `base`: the name of the state that was edited.
    func edited(
        _ author: Int,
        _ id: String,
        _ name: RevisionName,
        isDeleted: Bool,
        _ body: JSONValue,
        on base: RevisionName?
    ) {
        var history = histories[id] ?? History()
        // Two people may make the same revision of a tree.
        if history.restsOn[name.asVersion] != nil { return }
        let superseded = base.flatMap { history.restsOn[$0.asVersion] } ?? []
        let number = history.edits.count
        history.edits.append(
            Edit(
                author: author,
                name: name,
                isDeleted: isDeleted,
                body: isDeleted ? Optional.none : body,
                superseded: superseded
            )
        )
        history.restsOn[name.asVersion] = superseded.union([number])
        histories[id] = history
    }

    /// A state has another name, too, which a gateway gave it.
    func rename(_ id: String, _ name: RevisionName, _ other: RevisionName) {
        // Nothing is known of the states that resolutions made.
        guard let edits = histories[id]?.restsOn[name.asVersion] else { return }
        histories[id]?.restsOn[other.asVersion] = edits
    }

    func purge(_ id: String) { purged.insert(id) }

    /// The IDs of all documents that anybody edited.
    var documents: [String] { histories.keys.sorted() }

    /// Returns the problem with what is left of a document; nil if there is none.
    ///
    /// `body`: nil for a document that is deleted.
    func problem(with id: String, _ body: JSONValue?) -> String? {
        guard let history = histories[id], !purged.contains(id) else { return nil }
        let superseded = history.edits.reduce(into: Set()) { $0.formUnion($1.superseded) }
        let left = history.edits.indices.filter { history.edits[$0].body == body }
        if left.isEmpty {
            return body == nil ? "UNDELETED \(id): nobody deleted it" : "FORGED \(id): nobody wrote it"
        }
        if left.allSatisfy(superseded.contains) {
            return "\(body == nil ? "UNDELETED" : "STALE") \(id): what is left had been superseded"
        }
        return nil
    }

    /// Returns a line for each edit of a document, to look into a finding.
    func account(of id: String) -> String {
        guard let history = histories[id] else { return "no edits" }
        return history.edits.enumerated().map { number, edit in
            let above = history.edits.indices.filter { history.edits[$0].superseded.contains(number) }
            return
                "edit \(number) by \(edit.author): \(edit.name)\(edit.isDeleted ? " deleted" : "") superseded by \(above)"
        }.joined(separator: "\n")
    }
}

extension RevisionName {
    /// The version that stands for a revision ID; the name itself where there is none.
    var asVersion: RevisionName {
        switch self {
        case .version: self
        case .revision(let id): id.encodedVersion.map { .version($0) } ?? self
        }
    }
}
