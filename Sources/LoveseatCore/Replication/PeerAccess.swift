package import LoveseatModel
package import LoveseatReplication
import LoveseatStorage

/// Asks the ruling about a peer's access for a connection of Couchbase's wire. The rules are those of ``AccessRuling``.
extension CollectionReplica {
    /// The access of the peer at this moment; nil if it is not restricted.
    var accessNow: CollectionAccess? {
        access.map { CollectionAccess($0, store: store, collection: collection) }
    }

    /// Leaves out revisions that the peer may not read, and remembers that the peer has the others.
    func granting(
        _ found: [OutgoingRevision],
        _ requests: [RevisionRequest],
        _ access: CollectionAccess?
    ) throws -> [OutgoingRevision] {
        guard let access else { return found }
        let granted = try zip(requests, found).map { request, revision -> OutgoingRevision in
            guard case .found(let content) = revision else { return revision }
            let candidate = FilterCandidate(content, of: request.documentID)
            // Only a deletion is decided on by more than its own content.
            let record =
                content.isDeleted
                ? try store.readRows { try $0.record(request.documentID, in: collection) } : nil
            return try access.mayRead(candidate, of: record) ? revision : .missing
        }
        let ids = zip(requests, granted).compactMap { request, revision -> String? in
            if case .found = revision { request.documentID } else { nil }
        }
        if !ids.isEmpty {
            try store.write(call: "replication") {
                try $0.grantTable.grant(ids, in: collection, to: access.peerName)
            }
        }
        return granted
    }

    package func writeRefusal(of revision: IncomingRevision) throws(LoveseatError) -> LoveseatError? {
        try source.asking { try rulings(on: [revision])[0].refusal }
    }

    /// Returns the policy's decisions about pushed revisions, and remembers that the peer has those that it may write.
    func verdicts(on revisions: [IncomingRevision]) throws -> [PushVerdict] {
        let verdicts = try rulings(on: revisions)
        guard let access else { return verdicts }
        let written = zip(revisions, verdicts).compactMap { $1.refusal == nil ? $0.documentID : nil }
        if !written.isEmpty {
            try store.write(call: "replication") {
                try $0.grantTable.grant(written, in: collection, to: access.name)
            }
        }
        return verdicts
    }

    private func rulings(on revisions: [IncomingRevision]) throws
        -> [PushVerdict]
    {
        guard let access = accessNow else { return revisions.map { _ in PushVerdict() } }
        let records = try store.readRows { view in
            try revisions.map { try view.record($0.documentID, in: collection) }
        }
        return try zip(revisions, records).map { revision, record -> PushVerdict in
            let ruling = try access.ruling.write(AccessRuling.Change(revision), over: record)
            if ruling.mayWrite { return PushVerdict(foreign: ruling.foreign) }
            let error = LoveseatError(.httpForbidden, "you may not write \"\(revision.documentID)\"")
            return PushVerdict(refusal: error)
        }
    }

    /// Notes which documents the peer was sent and may not read any more. One that it may read again can be lost once more.
    func noteLossesNow() throws {
        // Without a policy a peer may read everything.
        guard let access = accessNow else { return }
        let granted = try store.readRows { view in
            try view.grants(in: collection, to: access.peerName).compactMap { id, isLost in
                try view.record(id, in: collection).map { (record: $0, isLost: isLost) }
            }
        }
        let changes = try granted.map { record, isLost in
            (id: record.id, change: try access.ruling.change(of: record, wasLost: isLost))
        }
        let lost = changes.filter { $0.change == .lost }.map(\.id)
        let back = changes.filter { $0.change == .regained }.map(\.id)
        if lost.isEmpty, back.isEmpty { return }
        try store.write(call: "replication") { transaction in
            try transaction.grantTable.grant(back, in: collection, to: access.peerName)
            try transaction.grantTable.noteLosses(lost, in: collection, of: access.peerName)
        }
    }
}

/// The policy's decision about a pushed revision.
struct PushVerdict {
    /// Why the peer may not write it; nil if it may.
    var refusal: LoveseatError?
    /// Content of the document that the peer may not write.
    var foreign: ForeignContent?
}

extension FilterCandidate {
    fileprivate init(_ content: SendableRevision, of id: String) {
        self.init(
            documentID: id,
            revision: content.name,
            isDeleted: content.isDeleted,
            body: content.body
        )
    }
}
