import LoveseatCore
import LoveseatModel
import LoveseatReplication
private import Synchronization

/// A peer that sees only a part of what its host has, by a filter of its own or by its host's access policy.
///
/// Documents fall into four classes, by their number or by their content. The guest sees some of the classes.
final class SimulatedGuest {
    static let classes = 4

    let peer: SimulatedPeer
    let host: Int
    /// Whether the host's policy restricts the guest, and not a filter of its own.
    let isRestricted: Bool
    let rights: SimulatedRights
    /// How often its filter was loosened.
    var filterVersion = 0
    /// The classes that its filter lets through in the end.
    let lastFilter: Set<Int>
    private let keepsVersion: Bool
    /// Whether it edits nothing, and speaks the other wire.
    let onlyPulls: Bool

    /// `keepsVersion`: a mistake: a loosened filter has the version of the narrow one.
    init(
        _ peer: SimulatedPeer,
        host: Int,
        isRestricted: Bool,
        rights: SimulatedRights,
        lastFilter: Set<Int>,
        keepsVersion: Bool,
        onlyPulls: Bool = false
    ) {
        (self.peer, self.host, self.isRestricted) = (peer, host, isRestricted)
        (self.rights, self.lastFilter, self.keepsVersion) = (rights, lastFilter, keepsVersion)
        self.onlyPulls = onlyPulls
    }

    /// Puts its filter into a connection that it makes.
    func restrict(_ plan: inout SimulatedConnection.Plan) {
        // With a filter of its own besides, it would keep what is taken from it.
        (plan.pushFilter, plan.pullFilter) = (nil, nil)
        if onlyPulls { (plan.pulls, plan.pushes) = (true, false) }
        if isRestricted { return }
        let (rights, seen) = (rights, rights.read)
        plan.filter = { candidate, _ in rights.isIn(seen, candidate.documentID, candidate.body) }
        plan.filterVersion = "\(keepsVersion ? 0 : filterVersion)"
    }

    /// A revision that the guest holds of a document that it was never allowed to see; nil if there is none. A filter decides over the
    /// current revision only.
    func forbiddenContent(_ id: String, _ tree: RevisionTree) -> RevisionID? {
        let held = isRestricted ? Array(tree.nodes.values) : tree.current.map { [$0] } ?? []
        return held.first { node in
            guard let body = node.body, JSONElement(body)["by"]?.int != peer.index else { return false }
            return !rights.isIn(rights.everRead, id, body)
        }?
        .id
    }
}

/// The rights of a guest to read and write. Shared with the host's access policy.
final class SimulatedRights: Sendable {
    private struct State {
        var read: Set<Int>
        var write: Set<Int>
        var everRead: Set<Int>
    }

    /// Whether the class of a document depends on its content, and not on its number.
    let isByBody: Bool
    private let state: Mutex<State>

    init(isByBody: Bool, read: Set<Int>, write: Set<Int>) {
        self.isByBody = isByBody
        state = Mutex(State(read: read, write: write, everRead: read))
    }

    var read: Set<Int> { state.withLock { $0.read } }
    var write: Set<Int> { state.withLock { $0.write } }
    var everRead: Set<Int> { state.withLock { $0.everRead } }

    func change(read: Set<Int>, write: Set<Int>) {
        state.withLock { state in
            (state.read, state.write) = (read, write)
            state.everRead.formUnion(read)
        }
    }

    /// Whether a document's class is among some. Content without a class, as a tombstone's, is in all of them.
    func isIn(_ classes: Set<Int>, _ id: String, _ body: JSONText) -> Bool {
        let number = isByBody ? JSONElement(body)["n"]?.int : Int(id.filter(\.isNumber))
        return number.map { classes.contains($0 % SimulatedGuest.classes) } ?? true
    }

    func access(_ id: String, _ body: JSONText) -> DocumentAccess {
        if isIn(write, id, body) { return .write }
        return isIn(read, id, body) ? .read : .none
    }
}
