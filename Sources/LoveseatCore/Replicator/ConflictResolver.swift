public import LoveseatModel
import LoveseatReplication

/// A document that was changed here and at the peer.
public struct Conflict: Sendable {
    /// The document.
    public let documentID: String
    /// What is here; nil if it was deleted.
    public let localDocument: Document?
    /// What the peer has; nil if it was deleted there.
    public let remoteDocument: Document?
    /// What both grew from, if it is still here.
    public let baseDocument: Document?
    fileprivate let sides: ConflictCase

    init(_ conflict: ConflictCase) {
        sides = conflict
        documentID = conflict.documentID
        func document(_ side: ConflictCase.Side?) -> Document? {
            guard let side, !side.isDeleted else { return nil }
            return Document(id: conflict.documentID, revisionID: side.revision, sequence: 0, body: side.body)
        }
        localDocument = document(conflict.local)
        remoteDocument = document(conflict.remote)
        baseDocument = document(conflict.base)
    }
}

/// Decides between two versions of a document.
///
/// Called outside every lock, for several documents at once; called again if the document changes meanwhile. Give every
/// peer the same rule, and let it depend on nothing but the conflict: then all of them end with the same document.
public protocol ConflictResolverProtocol: Sendable {
    /// The document that both become: one of the two, or a new one; nil deletes it. A document that was read from another
    /// collection is refused, as is one with another ID.
    ///
    /// If it throws, the conflict stays, and the replicator's next start asks again.
    func resolve(conflict: Conflict) async throws -> Document?
}

/// The resolvers that come with Loveseat.
public enum ConflictResolver {
    /// A deletion wins, then the version that was edited more often, then the greater revision ID: the same on every peer.
    public static var `default`: any ConflictResolverProtocol { DefaultResolver() }

    /// A resolver made of a closure.
    public static func custom(_ body: @escaping @Sendable (Conflict) async throws -> Document?)
        -> any ConflictResolverProtocol
    {
        ClosureResolver(body: body)
    }
}

private struct ClosureResolver: ConflictResolverProtocol {
    let body: @Sendable (Conflict) async throws -> Document?
    func resolve(conflict: Conflict) async throws -> Document? { try await body(conflict) }
}

struct DefaultResolver: ConflictResolverProtocol {
    func resolve(conflict: Conflict) async throws -> Document? {
        switch DefaultConflictResolver.resolve(conflict.sides) {
        case .local: conflict.localDocument
        case .remote: conflict.remoteDocument
        case .merged, .deleted: nil
        }
    }
}

extension ConflictCase {
    /// What the app's answer means.
    func resolution(_ answer: Document?) throws(LoveseatError) -> Resolution {
        guard let answer else { return .deleted }
        let body = answer.json.canonical
        if !local.isDeleted, answer.revisionID == local.revision, body == local.body.canonical {
            return .local
        }
        if !remote.isDeleted, answer.revisionID == remote.revision, body == remote.body.canonical {
            return .remote
        }
        // As for an edit of the peer's version, on top of which the result goes.
        let kept = [remote, local].first { !$0.isDeleted && $0.body.bytes.contains(word: "_attachments") }
        return .merged(try Collection.checkedJSON(of: answer).keepingAttachments(of: kept?.body))
    }
}
