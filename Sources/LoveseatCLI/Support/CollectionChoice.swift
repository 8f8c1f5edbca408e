import Foundation
import Loveseat

/// The collections of a replication whose user named none: those that are here, without those that the peer lacks, or forbids to this user.
///
/// A peer does not name all of them at once: it leaves rights out of account as long as it lacks a collection, and one that forbids the
/// default collection names the permitted ones only to a client that asks for the default one alone. So there are several attempts. Each has
/// fewer collections than the one before, except for one with the default collection alone, and one with those that the peer names.
struct CollectionChoice {
    /// Whether the user named the collections, which are not changed then.
    let isFixed: Bool
    /// The collections of the next attempt; nil for those that the options say.
    private(set) var names: [CollectionName]?
    /// The error of an attempt in which the peer had none of the collections, while the default one is tried alone.
    private var lackedAll: LoveseatError?
    private var wasNamed = false

    init(isFixed: Bool) { self.isFixed = isFixed }

    /// The options with the collections of the next attempt.
    func applied(to peer: PeerOptions) -> PeerOptions {
        guard let names else { return peer }
        var peer = peer
        peer.collections = names.map(\.fullName).joined(separator: ",")
        return peer
    }

    /// Chooses the collections of another attempt after one that failed.
    ///
    /// `creates`: whether collections that do not exist here are created.
    ///
    /// - Returns: false if there is nothing else to try.
    mutating func narrow(
        after error: LoveseatError,
        _ configuration: ReplicatorConfiguration,
        of database: Database,
        creates: Bool
    ) throws -> Bool {
        guard !isFixed else { return false }
        let permitted: [CollectionName]
        switch error.collections {
        case .lacks(let missing):
            let tried = configuration.collections.compactMap { CollectionName(path: $0.collection.fullName) }
            return exclude(Swift.Set(missing), from: tried, error)
        case .permits(let names): permitted = names
        case nil: return false
        }
        guard !wasNamed else { return false }
        let possible = try permitted.filter { name in
            try creates || database.collection(name: name.name, scope: name.scope) != nil
        }
        guard !possible.isEmpty else { return false }
        (names, lackedAll, wasNamed) = (possible, nil, true)
        return true
    }

    private mutating func exclude(
        _ missing: Swift.Set<CollectionName>,
        from tried: [CollectionName],
        _ error: LoveseatError
    ) -> Bool {
        let rest = tried.filter { !missing.contains($0) }
        guard rest.isEmpty else {
            if rest.count < tried.count { names = rest }
            return rest.count < tried.count
        }
        guard tried.count > 1, tried.contains(.default) else { return false }
        (names, lackedAll) = ([.default], error)
        return true
    }

    /// The error to report: what the peer says about the default collection alone says less than what it said about all, unless the user
    /// has no rights.
    func reported(_ error: LoveseatError) -> LoveseatError {
        // How peers say that they do not serve the default collection.
        let answers: [LoveseatError.Code] = [.httpNotFound, .init(10_400), .remoteError]
        guard let lackedAll, answers.contains(error.code) else { return error }
        return lackedAll
    }

    /// The collections that are here and are not in the next attempt.
    func leftOut(of database: Database) throws -> [LeftOutCollection] {
        guard let names else { return [] }
        let here = try database.scopes().flatMap { try $0.collections() }
        return here.filter { collection in !names.contains { $0.fullName.isExactly(collection.fullName) } }
            .map { LeftOutCollection(name: $0.fullName, documents: Int(clamping: $0.count)) }
    }
}

/// A collection that is here and is not replicated.
struct LeftOutCollection {
    let name: String
    let documents: Int

    var text: String { documents == 0 ? name : "\(name) (\(documents.counted("document")))" }

    var json: JSONValue { ["collection": .string(name), "documents": JSONValue(documents)] }
}

extension [LeftOutCollection] {
    var text: String { map(\.text).joined(separator: ", ") }

    /// Says why they are not replicated. That documents stay behind is a warning.
    func report() {
        if isEmpty { return }
        let line =
            "loveseat: not replicated, because the peer does not have them, or does not let this user have them: \(text)"
        if contains(where: { $0.documents > 0 }) { Output.remark(line) } else { Output.notice(line) }
    }
}
