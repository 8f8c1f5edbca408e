import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// One entry of a `changes` message (replication.md §7.1): `[sequence, docID, revID, flags?, bodySize?]`.
extension AnnouncedChange {
    init(_ change: LocalChange) {
        self.init(
            sequence: RemoteSequence(change.sequence),
            documentID: change.documentID,
            revision: change.name,
            flags: change.takesAway ? .accessLost : change.isDeleted ? .deleted : [],
            bodySize: change.takesAway ? 0 : max(1, change.bodySize)
        )
        vector = change.state?.announcedVector
        knowledge = change.knowledge
    }

    /// Reads an entry. One that names no valid document or revision has a ``defect``.
    ///
    /// - Throws: ``ReplyError`` for JSON that is not an entry at all.
    init(_ entry: JSONElement, _ names: RevisionNaming) throws(ReplyError) {
        guard let sequence = entry[0], let id = entry[1]?.string, let text = entry[2]?.string else {
            throw ReplyError("BLIP", 400, "invalid entry of changes")
        }
        let state = names.announced(text)
        // Older peers write a boolean.
        let flags = entry[3].map { $0.int ?? ($0.bool == true ? 1 : 0) } ?? 0
        self.init(
            sequence: RemoteSequence(sequence),
            documentID: id,
            revision: state?.name ?? .unknown,
            flags: Flags(rawValue: flags),
            bodySize: min(max(0, entry[4]?.int ?? 0), ReplicationTuning.largestBodyAnnounced)
        )
        vector = state?.vector
        if !DocumentID.isValidOnWire(id) {
            defect = "its ID is not valid"
        } else if state == nil {
            defect = "its revision ID is not valid"
        }
    }

    /// The revision as a list names it: the whole vector if there is one.
    var revisionText: String { vector?.text ?? revision.text }

    var json: JSONValue {
        var items: [JSONValue] = [
            sequence.json, .string(documentID), .string(revisionText), JSONValue(flags.rawValue),
        ]
        if bodySize > 0 { items.append(JSONValue(bodySize)) }
        return .array(items)
    }
}

/// `changes` (replication.md §7).
struct ChangesMessage: Hashable {
    var collection: Int?
    var changes: [AnnouncedChange]
    /// The receiver is a gateway that replicates from here, and refuses lists that do not say so (gateway.md 49).
    var isForGateway = false

    init(_ changes: [AnnouncedChange], collection: Int?, isForGateway: Bool) {
        (self.changes, self.collection, self.isForGateway) = (changes, collection, isForGateway)
    }

    /// - Throws: ``ReplyError`` for a body that is not a list of changes.
    init(_ message: Message, _ names: RevisionNaming) throws(ReplyError) {
        changes = try JSONElement.list(message.body).map { (entry) throws(ReplyError) in
            try AnnouncedChange(entry, names)
        }
        for (index, digest) in message.knowledge(of: changes.count) { changes[index].knowledge = digest }
    }

    var message: Message {
        var message = Message(.changes, collection: collection, list: changes.map(\.json))
        if isForGateway { message.properties["ignoreNoConflicts"] = "true" }
        message.addKnowledge(changes.map(\.knowledge))
        return message
    }

    typealias Answer = ListAnswer<Decision>

    /// Whether an entry of a list is wanted.
    enum Decision: ListDecision {
        case notWanted
        /// With the revisions that are there and may be ancestors.
        case wanted(known: [RevisionName])
        case refused(Int)

        init(_ answer: JSONElement?, _ names: RevisionNaming) {
            guard let answer else {
                self = .notWanted
                return
            }
            if answer.kind == .array {
                self = .wanted(known: answer.items.compactMap { $0.string.flatMap(names.known) })
            } else {
                self = answer.status == 0 ? .notWanted : .refused(answer.status)
            }
        }

        var json: JSONValue {
            switch self {
            case .notWanted: 0
            case .wanted(let known): .array(known.map { .string($0.text) })
            case .refused(let status): JSONValue(status)
            }
        }
    }
}

// MARK: Lists and their answers

extension JSONElement {
    /// The items of a JSON array; `null` counts as an empty one.
    static func list(_ body: [UInt8]) throws(ReplyError) -> [JSONElement] {
        let limit = ReplicationTuning.maximumListSize
        guard body.count <= limit else {
            throw ReplyError("BLIP", 413, "a list of more than \(limit >> 20) MB")
        }
        guard let element = try? JSONElement(parsing: body), element.kind == .array || element.isNull else {
            throw ReplyError("BLIP", 400, "Invalid JSON body")
        }
        return Array(element.items)
    }

    /// The status in an answer; 500 for a number that is not a status, 0 for anything else.
    var status: Int {
        guard let status = int else { return 0 }
        return (0...999).contains(status) ? status : 500
    }
}

extension Message {
    /// The property in which a list tells Loveseats what is known besides the lines of its entries (docs/extensions.md): an object of
    /// digests by position.
    private static let knowledgeProperty = "loveseat_known"

    mutating func addKnowledge(_ digests: [String?]) {
        var known = JSONObject()
        for (index, digest) in digests.enumerated() {
            if let digest { known[String(index)] = .string(digest) }
        }
        if known.isEmpty { return }
        properties[Self.knowledgeProperty] =
            String(decoding: JSONText(canonical: .object(known)).bytes, as: UTF8.self)
    }

    /// Reads the property of a list of so many entries: digests by position. Parts that are not valid are ignored.
    func knowledge(of count: Int) -> [Int: String] {
        guard let text = properties[Self.knowledgeProperty],
            text.utf8.count <= ReplicationTuning.maximumListSize,
            let json = try? JSONElement(parsing: Array(text.utf8)), json.kind == .object
        else { return [:] }
        var digests: [Int: String] = [:]
        for (key, value) in json.members {
            guard let index = Int(key), (0..<count).contains(index), let digest = value.string else {
                continue
            }
            digests[index] = digest
        }
        return digests
    }

    /// A list of changes or proposals. An empty one says that there are no more, and wants no answer.
    init(_ profile: Profile, collection: Int?, list: [JSONValue]) {
        self.init(
            profile,
            collection: collection,
            body: JSONText(canonical: .array(list)).bytes,
            isUrgent: true,
            noReply: list.isEmpty
        )
        isCompressed = !list.isEmpty
    }
}
