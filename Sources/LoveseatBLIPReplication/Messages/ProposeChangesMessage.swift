import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// One entry of `proposeChanges` (replication.md §8): `[docID, revID, serverRevID?, bodySize?]`.
extension ProposedChange {
    init(_ change: LocalChange) {
        self.init(
            documentID: change.documentID,
            revision: change.name,
            serverRevision: change.remoteAncestor,
            bodySize: max(1, change.bodySize)
        )
        vector = change.state?.announcedVector
        knowledge = change.knowledge
    }

    /// - Throws: ``ReplyError`` for JSON that is not an entry, or names no valid document or revision.
    init(_ entry: JSONElement, _ names: RevisionNaming) throws(ReplyError) {
        guard let id = entry[0]?.string, DocumentID.isValidOnWire(id),
            let state = entry[1]?.string.flatMap(names.announced)
        else { throw ReplyError("BLIP", 400, "invalid entry of proposeChanges") }
        let server = entry[2]?.string ?? ""
        let serverRevision = names.known(server)
        guard server.isEmpty || serverRevision != nil else {
            throw ReplyError("BLIP", 400, "invalid server revision in proposeChanges")
        }
        self.init(
            documentID: id,
            revision: state.name,
            serverRevision: serverRevision,
            bodySize: min(max(0, entry[3]?.int ?? 0), ReplicationTuning.largestBodyAnnounced)
        )
        vector = state.vector
    }

    var json: JSONValue {
        .array([
            .string(documentID), .string(vector?.text ?? revision.text), .string(serverRevision?.text ?? ""),
            JSONValue(bodySize),
        ])
    }
}

/// `proposeChanges` (replication.md §8).
struct ProposeChangesMessage: Hashable {
    var collection: Int?
    var proposals: [ProposedChange]
    /// Whether a conflict is to be answered with the revision that is current there.
    var namesRevision = true
    /// The protocol extensions that the sender supports.
    var extensions: String?

    init(_ proposals: [ProposedChange], collection: Int?, extensions: String?) {
        (self.proposals, self.collection, self.extensions) = (proposals, collection, extensions)
    }

    /// - Throws: ``ReplyError`` for a body that is not a list of proposals.
    init(_ message: Message, _ names: RevisionNaming) throws(ReplyError) {
        proposals = try JSONElement.list(message.body).map { (entry) throws(ReplyError) in
            try ProposedChange(entry, names)
        }
        for (index, digest) in message.knowledge(of: proposals.count) { proposals[index].knowledge = digest }
        namesRevision = message.properties.bool("conflictIncludesRev")
        extensions = message.properties[ProtocolExtensions.property]
    }

    var message: Message {
        var message = Message(.proposeChanges, collection: collection, list: proposals.map(\.json))
        if namesRevision { message.properties["conflictIncludesRev"] = "true" }
        message.properties[ProtocolExtensions.property] = extensions
        message.addKnowledge(proposals.map(\.knowledge))
        return message
    }

    typealias Answer = ListAnswer<Decision>

    /// The decision about a proposal.
    enum Decision: ListDecision {
        case wanted
        case alreadyThere
        case conflict(HubState)
        case refused(Int)

        init(_ answer: JSONElement?, _ names: RevisionNaming) {
            let status = answer?.kind == .object ? answer?["status"]?.status ?? 0 : answer?.status ?? 0
            switch status {
            case 0: self = .wanted
            case 304: self = .alreadyThere
            case 409:
                guard let text = answer?["rev"]?.string else {
                    self = .conflict(.unknown)
                    return
                }
                self = .conflict(text.isEmpty ? .hasNone : names.state(text).map { .has($0) } ?? .unknown)
            default: self = .refused(status)
            }
        }

        var json: JSONValue {
            switch self {
            case .wanted: 0
            case .alreadyThere: 304
            case .conflict(.unknown): 409
            case .conflict(.hasNone): ["status": 409, "rev": ""]
            case .conflict(.has(let state)): ["status": 409, "rev": .string(state.currentText)]
            case .refused(let status): JSONValue(status)
            }
        }
    }
}
