public import LoveseatModel
import LoveseatReplication

/// Two versions of a document, changed here and at the peer.
public struct Conflict: Sendable {
    /// The ID of the document.
    public let documentID: String
    /// The version of this database; nil if it was deleted here.
    public let localDocument: Document?
    /// The version of the peer; nil if it was deleted there.
    public let remoteDocument: Document?
    /// The last version that both have in common; nil if there is none, or if its content is no longer kept.
    public let baseDocument: Document?
    /// Whether versions decide by the default rule, as in a conflict with a peer that has them.
    package let comparesVersions: Bool

    /// Creates a conflict, to test a resolver without a replication.
    ///
    /// The documents need not have been saved. A replicator makes the conflicts that it has resolved itself.
    ///
    /// - Parameters:
    ///   - documentID: The ID that all of the documents have.
    ///   - localDocument: The version of this database; nil for a deletion.
    ///   - remoteDocument: The version of the peer; nil for a deletion.
    ///   - baseDocument: The last version that both have in common. The default is nil, for none.
    public init(
        documentID: String,
        localDocument: Document?,
        remoteDocument: Document?,
        baseDocument: Document? = nil
    ) {
        self.init(documentID, localDocument, remoteDocument, baseDocument, comparesVersions: true)
    }

    private init(
        _ documentID: String,
        _ localDocument: Document?,
        _ remoteDocument: Document?,
        _ baseDocument: Document?,
        comparesVersions: Bool
    ) {
        (self.documentID, self.comparesVersions) = (documentID, comparesVersions)
        (self.localDocument, self.remoteDocument) = (localDocument, remoteDocument)
        self.baseDocument = baseDocument
    }

    init(_ conflict: ConflictCase) {
        func document(_ side: ConflictCase.Side?) -> Document? {
            guard let side, !side.isDeleted else { return nil }
            return Document(
                id: conflict.documentID,
                revisionID: side.revision,
                version: side.version,
                sequence: 0,
                body: side.body
            )
        }
        self.init(
            conflict.documentID,
            document(conflict.local),
            document(conflict.remote),
            document(conflict.base),
            comparesVersions: conflict.comparesVersions
        )
    }
}

/// Decides between two versions of a document.
///
/// A resolver runs outside every lock and transaction, for several documents at a time, and again if the document changes meanwhile.
/// The replicator that connects asks its resolver; a listener has none. Use the same resolver on every peer that connects, and let its
/// result depend on the conflict alone, so that all peers end with the same document.
public protocol ConflictResolverProtocol: Sendable {
    /// Returns the document that replaces both versions.
    ///
    /// A resolver that throws, or takes longer than ``ReplicatorConfiguration/conflictResolverTimeout``, leaves the conflict as it is: an
    /// event reports the error, and the replicator's next start asks again.
    ///
    /// - Parameter conflict: The two versions.
    /// - Returns: One of the two documents, or a new one with the same ID; nil deletes the document. A document that was read from
    ///   another collection is refused, as is one with another ID.
    /// - Throws: Any error, which the event reports.
    func resolve(conflict: Conflict) async throws -> Document?
}

/// The resolvers that come with Loveseat.
public enum ConflictResolver {
    /// The default resolver: a deletion wins, then the version that was edited more often, then the greater revision ID. The result is the same on
    /// every peer.
    ///
    /// In a conflict with a peer of Couchbase Lite 4 the version with the later ``Document/timestamp`` wins, and one that was not edited since the
    /// upgrade loses; see <doc:CouchbaseLite4>.
    public static var `default`: any ConflictResolverProtocol { DefaultResolver() }

    /// Returns a resolver that calls a closure; see ``ConflictResolverProtocol/resolve(conflict:)``.
    public static func custom(_ body: @escaping @Sendable (Conflict) async throws -> Document?)
        -> any ConflictResolverProtocol
    {
        ClosureResolver(body: body)
    }
}

/// An error of a resolver whose code the document's event has as it is; the event has `conflict` for any other error.
package struct ResolverRefusal: Error {
    let error: LoveseatError

    package init(_ error: LoveseatError) { self.error = error }
}

private struct ClosureResolver: ConflictResolverProtocol {
    let body: @Sendable (Conflict) async throws -> Document?
    func resolve(conflict: Conflict) async throws -> Document? { try await body(conflict) }
}

struct DefaultResolver: ConflictResolverProtocol {
    func resolve(conflict: Conflict) async throws -> Document? {
        guard let local = conflict.localDocument, let remote = conflict.remoteDocument else { return nil }
        // A document that an app made for a test may have no revision.
        guard let mine = local.revisionID, let theirs = remote.revisionID else {
            return local.revisionID == nil ? remote : local
        }
        let (one, other) = conflict.comparesVersions ? (local.version, remote.version) : (nil, nil)
        return StateRank(one, mine) > StateRank(other, theirs) ? local : remote
    }
}

extension ConflictCase {
    /// The resolution that the resolver's result means.
    func resolution(_ answer: Document?) throws(LoveseatError) -> Resolution {
        guard let answer else { return .deleted }
        let body = answer.json.canonical
        if !local.isDeleted, answer.revisionID == local.revision, body == local.body.canonical {
            return .local
        }
        if !remote.isDeleted, answer.revisionID == remote.revision, body == remote.body.canonical {
            return .remote
        }
        // As for an edit of the peer's version, which becomes the parent of the result.
        let kept = [remote, local].first { !$0.isDeleted && $0.body.bytes.contains(word: "_attachments") }
        return .merged(try DocumentValidator.canonicalBody(of: answer).keepingAttachments(of: kept?.body))
    }
}
