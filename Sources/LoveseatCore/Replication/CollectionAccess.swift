import LoveseatModel
package import LoveseatReplication
package import LoveseatStorage

/// The access of one connected peer, by a listener's policy.
package final class PeerAccess: Sendable {
    private let peer: PeerIdentity
    private let policy: AccessPolicy
    /// The name under which the documents that the peer was sent are remembered.
    let name: String

    package init(peer: PeerIdentity, policy: AccessPolicy) {
        self.peer = peer
        self.policy = policy
        name = peer.recordName
    }

    /// A ruling of this moment.
    func ruling(in collection: CollectionName) -> AccessRuling {
        AccessRuling { [peer, policy] candidate in
            policy.decide(peer, collection, candidate.map { Document($0) }).right
        }
    }
}

/// The access of a peer to a collection and its documents at one moment, whatever the wire: an ``AccessRuling``, with what the database
/// remembers of documents that were sent.
///
/// Its methods are called outside transactions, since the app's policy may use the database.
package struct CollectionAccess: Sendable {
    private let access: PeerAccess
    private let store: DocumentStore
    private let collection: CollectionHandle
    package let ruling: AccessRuling

    package init(_ access: PeerAccess, store: DocumentStore, collection: CollectionHandle) {
        self.access = access
        self.store = store
        self.collection = collection
        ruling = access.ruling(in: collection.name)
    }

    /// The access as the policy decides about it from now on.
    package func renewed() -> CollectionAccess {
        CollectionAccess(access, store: store, collection: collection)
    }

    /// The name under which the documents that the peer was sent are remembered.
    package var peerName: String { access.name }

    /// Whether the document exists for the peer.
    package func mayRead(_ record: DocumentRecord) throws -> Bool {
        try ruling.mayRead(record) { try wasSent(record.id) }
    }

    /// Whether the peer may have a revision's content. `record`: the document as it is now; nil if it is gone.
    func mayRead(_ revision: FilterCandidate, of record: DocumentRecord?) throws -> Bool {
        try ruling.mayRead(revision, of: record) { try wasSent(revision.documentID) }
    }

    /// Whether the peer may have a revision as the base of another one.
    func mayBuild(on revision: FilterCandidate, of record: DocumentRecord) throws -> Bool {
        try ruling.mayBuild(on: revision, of: record) { try wasSent(record.id) }
    }

    /// The branches of a document that the peer may read; nil if the document does not exist for it.
    package func branches(of record: DocumentRecord) throws -> DocumentBranches? {
        guard try mayRead(record) else { return nil }
        return try DocumentBranches(of: record).restricted { branch in
            FilterCandidate(branch, of: record.id).map { ruling.maySend($0) } ?? false
        }
    }

    private func wasSent(_ id: String) throws -> Bool {
        try store.readRows { try $0.isGranted(id, in: collection, to: access.name) }
    }

    /// Remembers that the peer has documents, so that it is told when they are deleted.
    package func grant(_ ids: [String]) async throws {
        let new = try store.readRows { view in
            try ids.filter { try !view.isGranted($0, in: collection, to: access.name) }
        }
        if new.isEmpty { return }
        try await store.writeFromTask(within: nil) {
            try $0.grantTable.grant(new, in: collection, to: access.name)
        }
    }
}

extension DocumentRecord: RuledDocument {
    package var hasTree: Bool { encodedTree != nil }
}

extension DocumentAccess {
    var right: AccessRight {
        switch self {
        case .none: .none
        case .read: .read
        case .write: .write
        }
    }
}

extension FilterCandidate {
    /// Creates a candidate from a branch; nil if its content is not here.
    fileprivate init?(_ branch: DocumentBranch, of id: String) {
        guard let body = branch.body else { return nil }
        self.init(documentID: id, revision: .revision(branch.id), isDeleted: branch.isDeleted, body: body)
    }
}

extension PeerIdentity {
    /// The name under which the documents and blobs that the peer was sent, or has sent, are remembered.
    var recordName: String {
        username.map { "user:\($0)" }
            ?? certificates.first.map { "certificate:" + Base64.encode(Hashing.sha256($0.derBytes)) }
            ?? "address:\(address)"
    }
}
