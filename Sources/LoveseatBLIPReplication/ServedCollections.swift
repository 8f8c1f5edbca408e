import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// Decides which collections the peer of a passive side gets (replication.md §B.2).
struct ServedCollections {
    let plan: PassivePlan
    let source: any ReplicaSource

    /// Binds the default collection for a peer of the 2.x form, which knows no other.
    ///
    /// - Returns: false if the database failed.
    /// - Throws: ``ReplyError`` if there is none for this peer, or the error that ends the session because it is gone.
    func bindDefault(_ effects: inout SessionEffects) throws(ReplyError) -> Bool {
        guard plan.collections.contains(.default) else {
            throw ReplyError("BLIP", 400, "This server is not configured for 3.0 client support")
        }
        guard let bound = effects.ask({ try source.bind([.default], checkpoints: [""]) }) else {
            return false
        }
        if bound.first?.exists == true { return true }
        guard plan.restrictsAccess else {
            effects.fail(LoveseatError(.notOpen, "the collection is gone"))
            return false
        }
        let others = others(&effects)
        throw ReplyError(
            "HTTP",
            403,
            others.isEmpty
                ? "you have no rights to any collection of this database"
                : "you may not have the default collection\(Self.permission)\(others)"
        )
    }

    /// The collections that the peer may have instead of the default one, so that its user need not know them.
    private func others(_ effects: inout SessionEffects) -> String {
        let named = plan.collections.filter { $0 != .default }
        let bound = effects.ask { try source.bind(named, checkpoints: named.map { _ in "" }) } ?? []
        return zip(named, bound).filter(\.1.exists).map(\.0.fullName).joined(separator: ", ")
    }

    private static let permission = "; you may have: "

    /// The collections that a peer that refuses the default one names instead; nil if it names none.
    static func permitted(by refusal: ReplyError) -> [CollectionName]? {
        guard let range = refusal.text.firstRange(of: permission) else { return nil }
        let names = refusal.text[range.upperBound...].split(separator: ", ").compactMap {
            CollectionName(path: $0)
        }
        return names.isEmpty ? nil : names
    }

    /// Answers the request for collections, and returns those that are bound; nil if none are. `extensions`: those that the answer names.
    func bind(
        _ request: GetCollectionsMessage,
        number: UInt64,
        extensions: String?,
        _ effects: inout SessionEffects
    ) -> [CollectionName]? {
        let known = request.names.map { name in name.flatMap { plan.collections.contains($0) ? $0 : nil } }
        let served = known.compactMap { $0 }
        let bound: [BoundCollection]
        if served.count < known.count {
            // A peer that was answered `null` cannot go on.
            bound = known.map { BoundCollection(exists: $0 != nil) }
        } else {
            let answered = effects.answering(number) {
                try source.bind(served, checkpoints: request.checkpoints)
            }
            // The database failed, and the peer was told.
            guard let answered else { return nil }
            bound = answered
        }
        let answer = GetCollectionsMessage.Answer(bound, extensions: extensions)
        effects.append(.reply(answer.message, to: number))
        return bound.allSatisfy(\.exists) ? served : nil
    }
}
