import Dispatch
import Foundation
import Logging
import LoveseatCore
import LoveseatModel

/// Two versions of a document, changed here and at the peer.
public struct Conflict {
    /// The ID of the document.
    public var documentID: String
    /// The version of this database; nil if it was deleted here.
    public var localDocument: Document?
    /// The version of the peer; nil if it was deleted there.
    public var remoteDocument: Document?
    /// Whether versions decide by the default rule, as in a conflict with a peer that has them.
    var comparesVersions = true
}

/// Decides between two versions of a document.
///
/// A resolver runs outside of every lock and transaction, for several documents at a time, and again if the document changes meanwhile. It may
/// use the database. Use the same resolver on every peer.
public protocol ConflictResolverProtocol {
    /// Returns the document that replaces both versions: one of them, or another one; nil deletes the document.
    ///
    /// A document with another ID is saved under the ID of the conflict. One of another collection is refused: the conflict stays, and an event
    /// reports it.
    func resolve(conflict: Conflict) -> Document?
}

/// The resolver that comes with Loveseat.
public final class ConflictResolver {
    /// The default resolver: a deletion wins, then the version that was edited more often, then the greater revision ID of a tree. The result is the
    /// same on every peer; Couchbase Lite takes the peer's version of two that were edited equally often.
    ///
    /// In a conflict with Couchbase Lite 4 the later version wins, and a version over a revision of a tree.
    public static var `default`: any ConflictResolverProtocol { DefaultResolver() }

    private init() {}
}

/// The rule of the engine, which does not call this.
struct DefaultResolver: ConflictResolverProtocol {
    func resolve(conflict: Conflict) -> Document? {
        // A deletion wins.
        guard let local = conflict.localDocument, let remote = conflict.remoteDocument else { return nil }
        guard let mine = local.revision, let theirs = remote.revision else { return remote }
        let (one, other) = conflict.comparesVersions ? (local.version, remote.version) : (nil, nil)
        return StateRank(one, mine) > StateRank(other, theirs) ? local : remote
    }
}

/// A resolver of the app, as the engine calls it.
struct EngineResolver: LoveseatCore.ConflictResolverProtocol {
    private let resolver: Unguarded<any ConflictResolverProtocol>
    private let collection: Collection

    init(_ resolver: any ConflictResolverProtocol, _ collection: Collection) {
        self.resolver = Unguarded(value: resolver)
        self.collection = collection
    }

    func resolve(conflict: LoveseatCore.Conflict) async throws -> EngineDocument? {
        try await withCheckedThrowingContinuation { continuation in
            // A resolver may block its thread as long as it likes: a queue of its own has one, whatever others block.
            DispatchQueue(label: "CouchbaseLiteSwift.conflict").async {
                continuation.resume(with: Swift.Result { try ask(about: conflict) })
            }
        }
    }

    private func ask(about conflict: LoveseatCore.Conflict) throws -> EngineDocument? {
        let local = conflict.localDocument.map { Document($0, in: collection) }
        let remote = conflict.remoteDocument.map { Document($0, in: collection) }
        // Both sides deleted it, so that there is nothing to decide.
        if local == nil, remote == nil { return nil }
        let id = conflict.documentID
        var shown = Conflict(documentID: id, localDocument: local, remoteDocument: remote)
        shown.comparesVersions = conflict.comparesVersions
        let answer = resolver.value.resolve(conflict: shown)
        guard let answer else { return nil }
        if answer === local { return conflict.localDocument }
        if answer === remote { return conflict.remoteDocument }
        if !answer.id.isExactly(id) {
            LogDomain.replicator.log(
                .warning,
                "The document ID of the resolved document '\(answer.id)' is not matching with the document ID of the conflicting document '\(id)'."
            )
        }
        try adopt(answer, conflictOf: id)
        var document = EngineDocument(id: id, answer.contents.json)
        // By this the engine knows a copy of one of the two that was not changed.
        document.revisionID = answer.revision
        return document
    }

    private func adopt(_ answer: Document, conflictOf id: String) throws {
        if let other = answer.collection, !other.hasSameName(as: collection) {
            throw ResolverRefusal(
                LoveseatError(
                    .conflict,
                    "the resolver of \"\(id)\" returned a document of another collection or database: return one of the two versions, or a new document"
                )
            )
        }
        do { try answer.contents.install(into: collection.database.engine) } catch {
            throw ResolverRefusal(LoveseatError(.unexpectedError, error.localizedDescription))
        }
        // The app may compare the document with the stored one.
        answer.collection = collection
    }
}
