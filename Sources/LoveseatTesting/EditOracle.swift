import LoveseatAssertions
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// Knows which edits the author of each edit in a history had seen, and so which versions may be left in the end (docs/decisions/0001).
///
/// An edit is superseded if the author of another edit knew it. The version that is left must be an edit that nobody superseded. It may be
/// deleted only if some deletion was not superseded, and then every live edit that was not superseded must be of a document that such a
/// deletion was about.
final class EditOracle {
    private struct Edit {
        let author: Int
        let revision: RevisionID
        let isDeleted: Bool
        let body: JSONText
        /// The first revision of the line that it went on.
        let origin: RevisionID
        /// The edits that its author knew.
        var superseded: Set<Int>
        /// It was purged by the only peer that knew it.
        var isGone = false
        /// Somebody purged it. A document that is made anew there takes its place everywhere (docs/decisions/0001).
        var isPurged = false
    }

    /// The knowledge of all peers about one document.
    private struct History {
        var edits: [Edit] = []
        /// The edits that each peer knows.
        var known: [Int: Set<Int>] = [:]
        /// The revisions that each peer has had.
        var held: [Int: Set<RevisionID>] = [:]
        /// The revisions that each peer knows to be given up or replaced.
        var decided: [Int: Set<RevisionID>] = [:]
        /// The edits that the author of a revision knew, and of which no copy of that revision tells.
        var untold: [RevisionID: Set<Int>] = [:]
        /// The edits that the maker of a revision knew, its own included.
        var restsOn: [RevisionID: Set<Int>] = [:]
        /// The edits that made a revision which somebody else had made before.
        var twins: [RevisionID: [Int]] = [:]
        var origins: [RevisionID: RevisionID] = [:]
        /// The sets of origins that copies made one document.
        var united: [Set<RevisionID>] = []

        /// A peer lost edits, which are gone if no other one knows them.
        mutating func lose(_ numbers: Set<Int>) {
            if numbers.isEmpty { return }
            let elsewhere = known.values.reduce(into: Set()) { $0.formUnion($1) }
            for number in numbers.subtracting(elsewhere) { lose(number) }
        }

        /// The only peer that knew of an edit lost it. Another one may have made the same revision, out of its own knowledge.
        private mutating func lose(_ number: Int) {
            edits[number].isGone = true
            let revision = edits[number].revision
            twins[revision]?.removeAll { $0 == number }
            // Nobody else made the revision, or the knowledge of it does not rest on this edit.
            guard let next = twins[revision]?.first, restsOn[revision]?.contains(number) == true else {
                return
            }
            twins[revision]?.removeFirst()
            restsOn[revision] = edits[next].superseded.union([next])
        }

        /// A peer lost its knowledge. An edit that its own edit superseded stays superseded only if a peer that holds the latter was told
        /// so: a hub's line does not tell it.
        mutating func untell(_ peer: Int, _ lost: Set<Int>) {
            for number in lost where edits[number].author == peer {
                let revision = edits[number].revision
                let holders = held.filter { $0.key != peer && $0.value.contains(revision) }.keys
                guard !holders.isEmpty else { continue }
                let told = holders.reduce(into: Set()) { $0.formUnion(decided[$1] ?? []) }
                edits[number].superseded = edits[number].superseded.filter {
                    told.contains(edits[$0].revision)
                }
            }
        }

        /// The revisions that somebody superseded. Edits that made the same revision count as one, as when two people begin a document with
        /// the same content: the ID of the revision is made of the content, and cannot tell them apart.
        func superseded(among edits: [Int]) -> Set<RevisionID> {
            let held = held.values.reduce(into: Set()) { $0.formUnion($1) }
            var below: [RevisionID: Set<RevisionID>] = [:]
            for number in edits {
                let edit = self.edits[number]
                // Where only copies of a revision are left, nobody knows more than the copies tell.
                let forgotten = held.contains(edit.revision) ? [] : untold[edit.revision] ?? []
                below[edit.revision, default: []].formUnion(
                    edit.superseded.subtracting(forgotten).map { self.edits[$0].revision }
                )
            }
            return below.reduce(into: []) { superseded, entry in
                // If somebody made a revision again on purpose after it had been superseded, neither of the two is superseded.
                let (revision, others) = entry
                superseded.formUnion(
                    others.filter { $0 != revision && below[$0]?.contains(revision) != true }
                )
            }
        }

        /// The edits by which others made the same revision, if a tree shows everything that they decided against. `seen`: the edits that
        /// the peer knows otherwise.
        func shownTwins(of id: RevisionID, in tree: RevisionTree, _ seen: Set<Int>) -> [Int] {
            guard let twins = twins[id], !twins.isEmpty else { return [] }
            let decided = tree.closed.union(tree.superseded).union([id])
            let open = Set(tree.candidates.map(\.node.id)).subtracting(decided)
            let known = restsOn[id] ?? []
            return twins.filter { twin in
                edits[twin].superseded.subtracting(known).allSatisfy {
                    let revision = edits[$0].revision
                    return decided.contains(revision) || (seen.contains($0) && !open.contains(revision))
                }
            }
        }
    }

    private var histories: [String: History] = [:]
    /// The peers that serve the line of their current revision, and nothing beside it.
    var hubs: Set<Int> = []
    /// Documents that a resolver deleted, whose edits may all be alive.
    private var resolvedAway: Set<String> = []

    /// A resolver is about to delete a document.
    func mayDelete(_ key: String) { resolvedAway.insert(key) }

    /// The documents that somebody made and nobody deleted, purged, or lost: somebody must have a version of each.
    var undeleted: [String] {
        histories.filter { key, history in
            !resolvedAway.contains(key) && history.edits.contains { !$0.isGone }
                && history.edits.allSatisfy { !$0.isDeleted && !$0.isPurged }
        }.keys.sorted()
    }

    /// A peer has stored something of a document.
    func note(_ peer: Int, _ key: String, _ tree: RevisionTree) {
        var history = histories[key] ?? History()
        // A hub keeps one line. If another document took the place of a deleted one, edits that no other peer knows are lost.
        let line = hubs.contains(peer) ? Set(tree.current.map { tree.line($0.id) } ?? []) : nil
        let before = history.known[peer] ?? []
        var known = line == nil ? before : []
        // A revision that came without its content cannot be passed on, and neither can ancestors of such revisions only. A tombstone by which a
        // peer of another wire shows that it gave up a leaf may come alone, without that leaf and what the leaf was given up for.
        let awaited = tree.nodes.keys.filter { tree.rule.awaitsBody(of: $0) || isBareNotice($0, in: tree) }
        var unheld = Set(awaited.flatMap { tree.line($0) })
        if !awaited.isEmpty {
            let leaves = Set(tree.nodes.keys).subtracting(tree.nodes.values.compactMap(\.parent))
            for leaf in leaves.subtracting(awaited) { unheld.subtract(tree.line(leaf)) }
        }
        for id in line ?? Set(tree.nodes.keys) where !unheld.contains(id) {
            known.formUnion(history.restsOn[id] ?? [])
            for twin in history.shownTwins(of: id, in: tree, known) {
                known.formUnion(history.edits[twin].superseded.union([twin]))
            }
        }
        history.known[peer] = known
        history.held[peer] = line ?? (history.held[peer] ?? []).union(tree.nodes.keys)
        history.decided[peer] = tree.closed.union(tree.superseded)
        if line != nil { history.lose(before.subtracting(known)) }
        // The edit was in flight when the only peer that had it purged it.
        for number in known where history.edits[number].isGone { history.edits[number].isGone = false }
        if let current = tree.current?.id, history.restsOn[current] == nil {
            history.restsOn[current] = known
        }
        histories[key] = history
    }

    /// Whether a revision only says that the leaf below it was given up, of which nothing else is here (docs/decisions/0009).
    private func isBareNotice(_ id: RevisionID, in tree: RevisionTree) -> Bool {
        guard let leaf = tree.node(id)?.parent, tree.node(leaf)?.body == nil else { return false }
        return id == BodyDigest.closingTombstone(over: leaf)
    }

    /// Somebody edited a document: `tree` is what the peer has now, `base` the revision that was edited.
    func edited(_ peer: Int, _ key: String, _ tree: RevisionTree, base: RevisionID?) {
        // The edit made nothing: it deleted a deleted document, or found no conflict to merge.
        guard let revision = made(in: tree, over: base), let body = revision.body else { return }
        var history = histories[key] ?? History()
        let known = history.known[peer] ?? []
        // A document that begins with the same content as one that was purged here continues that one.
        let first = base ?? tree.line(revision.id).last ?? revision.id
        let origin = history.origins[first] ?? tree.line(first).last ?? first
        let number = history.edits.count
        // A revision that came without its content was seen all the same.
        let seen = hubs.contains(peer) ? tree.line(revision.id) : Array(tree.nodes.keys)
        let beside = leavesBeside(revision.id, in: tree)
        let superseded = seen.reduce(into: known) {
            if $1 != revision.id { $0.formUnion(history.restsOn[$1] ?? []) }
        }.filter { !beside.contains(history.edits[$0].revision) }
        let isTwin = history.edits.contains { $0.revision == revision.id && !$0.isGone }
        history.origins[revision.id] = origin
        history.edits.append(
            Edit(
                author: peer,
                revision: revision.id,
                isDeleted: revision.isDeleted,
                body: body,
                origin: origin,
                superseded: superseded
            )
        )
        history.known[peer] = known.union([number])
        history.held[peer, default: []].insert(revision.id)
        history.decided[peer] = tree.closed.union(tree.superseded)
        if isTwin {
            history.twins[revision.id, default: []].append(number)
        } else {
            history.restsOn[revision.id] = known.intersection(superseded).union([number])
        }
        histories[key] = history
    }

    /// The revision that an edit made; nil if it made none. A deletion of one of several leaves that are kept does not become the current
    /// revision: the next leaf does, which nobody wrote.
    private func made(in tree: RevisionTree, over base: RevisionID?) -> RevisionTree.Node? {
        guard let current = tree.current, current.id != base else { return nil }
        guard tree.keepsBranches, let base, current.parent != base else { return current }
        return tree.leaves.first { $0.parent == base && $0.isDeleted } ?? current
    }

    /// The live leaves that an edit of a document with kept branches leaves as they are: its author decides nothing about them
    /// (docs/decisions/0009).
    private func leavesBeside(_ id: RevisionID, in tree: RevisionTree) -> Set<RevisionID> {
        guard tree.keepsBranches else { return [] }
        return Set(
            tree.open(among: tree.candidates).map(\.node).filter { !$0.isDeleted && $0.id != id }.map(\.id)
        )
    }

    /// A peer is about to send a hub a copy.
    func copied(_ peer: Int, _ key: String, _ copy: RevisionID, over hub: RevisionID, _ tree: RevisionTree) {
        var history = histories[key] ?? History()
        func origin(_ id: RevisionID) -> RevisionID { history.origins[id] ?? tree.line(id).last ?? id }
        history.origins[copy] = origin(hub)
        guard let current = tree.current?.id else {
            return impossible("peer \(peer) sends a copy of \(key), of which nothing is current")
        }
        let original = tree.original(current)
        var united = Set([origin(hub), origin(tree.origin(of: current))])
        history.united.removeAll { other in
            guard !other.isDisjoint(with: united) else { return false }
            united.formUnion(other)
            return true
        }
        history.united.append(united)
        // A copy is not an edit. It tells its reader what the hub had, the original, and the document of the original, but not everything
        // that its maker knows.
        func edits(on line: [RevisionID]) -> Set<Int> {
            line.reduce(into: []) { $0.formUnion(history.restsOn[$1] ?? []) }
        }
        let below = edits(on: tree.line(hub))
        let copied = edits(on: tree.line(tree.contains(original) ? original : current))
        let document = tree.origin(of: current)
        let untold = copied.subtracting(below).filter {
            let revision = history.edits[$0].revision
            return tree.contains(revision) && tree.origin(of: revision) != document
        }
        history.untold[original] = history.untold[original]?.intersection(untold) ?? untold
        if history.restsOn[copy] == nil { history.restsOn[copy] = below.union(copied).subtracting(untold) }
        histories[key] = history
    }

    /// A purge forgets the edits that only that peer knew.
    func purged(_ peer: Int, _ key: String) {
        // The peer knew of no edit of the document.
        guard var history = histories[key], let mine = history.known.removeValue(forKey: peer) else { return }
        history.held[peer] = nil
        for number in mine { history.edits[number].isPurged = true }
        history.lose(mine)
        history.untell(peer, mine)
        histories[key] = history
    }

    /// A peer's knowledge, by document.
    struct Knowledge {
        fileprivate var edits: [String: Set<Int>] = [:]
        fileprivate var revisions: [String: Set<RevisionID>] = [:]

        static let nothing = Self()
    }

    func knowledge(of peer: Int) -> Knowledge {
        Knowledge(
            edits: histories.compactMapValues { $0.known[peer] },
            revisions: histories.compactMapValues { $0.held[peer] }
        )
    }

    /// A peer went back to its earlier knowledge. Edits that no other peer had heard of are lost, which is not a mistake.
    func forgot(_ peer: Int, allBut left: Knowledge) {
        for key in histories.keys {
            guard var history = histories[key] else { continue }
            let before = history.known[peer] ?? []
            history.known[peer] = left.edits[key]
            history.held[peer] = left.revisions[key]
            let lost = before.subtracting(left.edits[key] ?? [])
            history.lose(lost)
            history.untell(peer, lost)
            for number in left.edits[key] ?? [] { history.edits[number].isGone = false }
            histories[key] = history
        }
    }

    /// Returns a line for each edit of a document, to look into a finding.
    func account(of key: String) -> String {
        guard let history = histories[key] else { return "no edits" }
        let lines = history.edits.enumerated().map { number, edit in
            var words = [
                "edit \(number) by \(edit.author): \(edit.revision) of \(edit.origin.text.prefix(8))"
            ]
            if edit.isDeleted { words.append("deleted") }
            if edit.isGone { words.append("gone") }
            if edit.isPurged { words.append("purged") }
            let above = history.edits.indices.filter { history.edits[$0].superseded.contains(number) }
            words.append(above.isEmpty ? "standing" : "superseded by \(above)")
            return words.joined(separator: ", ")
        }
        return (lines + history.united.map { "one document: \($0.map(\.text).sorted())" }).joined(
            separator: "\n"
        )
    }

    /// Returns the problem with the version of a document that is left; nil if there is none.
    ///
    /// `body`: nil for a document that is deleted everywhere.
    func problem(with key: String, isDeleted: Bool, body: JSONText?) -> String? {
        guard let history = histories[key], !history.edits.isEmpty else { return nil }
        let edits = history.edits.indices.filter { !history.edits[$0].isGone }
        let superseded = history.superseded(among: edits)
        let standing = edits.filter { !superseded.contains(history.edits[$0].revision) }
        guard isDeleted else {
            let left = edits.filter { !history.edits[$0].isDeleted && history.edits[$0].body == body }
            return left.isEmpty || left.contains { !superseded.contains(history.edits[$0].revision) }
                ? nil : "STALE \(key): what is left had been superseded"
        }
        func document(_ number: Int) -> RevisionID {
            let origin = history.edits[number].origin
            return history.united.first { $0.contains(origin) }?.min() ?? origin
        }
        let deletions = Set(standing.filter { history.edits[$0].isDeleted }.map(document))
        if deletions.isEmpty {
            return standing.isEmpty
                ? nil : "UNDELETED \(key): it is deleted, and every deletion had been superseded"
        }
        // If two peers made the same revision and one of them purged it, the revision counts as purged: a peer that makes anything anew
        // closes it.
        let purged = Set(history.edits.filter(\.isPurged).map(\.revision))
        let isLost = standing.contains { number in
            let edit = history.edits[number]
            return !edit.isDeleted && !purged.contains(edit.revision) && !deletions.contains(document(number))
        }
        return isLost ? "FOREIGN \(key): a live document is lost to a deletion of another one" : nil
    }
}
