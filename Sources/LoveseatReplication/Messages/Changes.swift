import LoveseatBLIP
package import LoveseatModel

/// One entry of a `changes` message (replication.md §7.1): `[sequence, docID, revID, flags?, bodySize?]`.
package struct AnnouncedChange: Hashable, Sendable {
    package let sequence: RemoteSequence
    package let documentID: String
    package let revision: RevisionID
    /// 1 deleted, 2 access revoked, 4 removed from the channel (replication.md §B.1); older peers write a boolean.
    package let flags: Int
    package let bodySize: Int
    /// The digest of what the peer knows of the document beside its line; nil if that is nothing.
    package internal(set) var knowledge: String?
    /// Why the revision cannot be had; nil if nothing is wrong with the entry.
    var defect: String?

    /// The peer takes the document away rather than sending it (replication.md Part B).
    package var isRemoval: Bool { flags > 1 && flags != 5 }
}

/// Reading and writing the lists of changes and their answers.
enum ChangesMessage {
    /// Larger announced sizes of bodies, in bytes, are taken for this one.
    private static let largestSize = 1 << 40

    /// Entries that name no valid document or revision have a ``AnnouncedChange/defect``.
    ///
    /// - Throws: ``ReplyError`` for a body that is no list of changes.
    static func parse(_ body: [UInt8]) throws(ReplyError) -> [AnnouncedChange] {
        try list(body).map { (entry) throws(ReplyError) in
            guard let sequence = entry[0], let id = entry[1]?.string, let text = entry[2]?.string else {
                throw ReplyError("BLIP", 400, "invalid entry of changes")
            }
            let revision = RevisionID(received: text)
            let flags = entry[3].map { $0.int ?? ($0.bool == true ? 1 : 0) } ?? 0
            var change = AnnouncedChange(
                sequence: RemoteSequence(sequence),
                documentID: id,
                revision: revision ?? RevisionID(generation: 1, digest: []),
                flags: flags,
                bodySize: min(max(0, entry[4]?.int ?? 0), largestSize)
            )
            if !DocumentID.isValidOnWire(id) {
                change.defect = "its ID is not valid"
            } else if revision == nil {
                change.defect = "its revision ID is not valid"
            }
            return change
        }
    }

    /// In bytes. A list of 200 changes, the most that anybody is asked for, has less than 100 kB.
    private static let longestList = 4 << 20

    /// The items of a JSON array; `null` counts as an empty one.
    static func list(_ body: [UInt8]) throws(ReplyError) -> [JSONElement] {
        guard body.count <= longestList else {
            throw ReplyError("BLIP", 413, "a list of more than \(longestList >> 20) MB")
        }
        guard let element = try? JSONElement(parsing: body), element.kind == .array || element.isNull else {
            throw ReplyError("BLIP", 400, "Invalid JSON body")
        }
        return Array(element.items)
    }

    static func body(_ changes: [LocalChange]) -> [UInt8] {
        json(
            changes.map { change in
                .array([
                    JSONValue(change.sequence), .string(change.documentID), .string(change.revision.text),
                    JSONValue(change.isDeleted ? 1 : 0), JSONValue(max(1, change.bodySize)),
                ])
            }
        )
    }

    /// The property with which a list tells Loveseats what is known beside the lines of its entries (docs/extensions.md).
    static let knowledgeProperty = "loveseat_known"

    /// The value of the property, with the position of each entry; nil if there is nothing to tell.
    static func knowledge(_ changes: [LocalChange]) -> String? {
        var digests = JSONObject()
        for (index, change) in changes.enumerated() {
            if let digest = change.knowledge { digests[String(index)] = .string(digest) }
        }
        return digests.isEmpty
            ? nil : String(decoding: JSONText(canonical: .object(digests)).bytes, as: UTF8.self)
    }

    /// Reads the property, for a list of so many entries; what is none of it says nothing.
    static func knowledge(_ message: Message, count: Int) -> [Int: String] {
        guard let text = message.properties[knowledgeProperty], text.utf8.count <= longestList,
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

    /// Entries that take documents away: flag 2 (replication.md §B.1).
    static func revocations(_ changes: [LocalChange]) -> [UInt8] {
        json(
            changes.map { change in
                .array([
                    JSONValue(change.sequence), .string(change.documentID), .string(change.revision.text), 2,
                ])
            }
        )
    }

    /// A status in an answer; 500 for a number that is none, 0 for anything else.
    static func status(_ item: JSONElement?) -> Int {
        guard let status = item?.int else { return 0 }
        return (0...999).contains(status) ? status : 500
    }

    static func json(_ items: [JSONValue]) -> [UInt8] { JSONText(canonical: .array(items)).bytes }

    /// An answer: for each entry 0, a status, or the revisions that could be ancestors; trailing zeros left out.
    static func answer(_ verdicts: [ChangeVerdict], acceptsConflicts: Bool) -> [UInt8] {
        answer(
            verdicts.map { verdict in
                switch verdict {
                case .wanted(let ancestors): .array(ancestors.map { .string($0.text) })
                case .alreadyHere: 0
                case .conflict: acceptsConflicts ? [] : 409
                }
            }
        )
    }

    static func answer(_ verdicts: [ProposalVerdict], namesRevision: Bool) -> [UInt8] {
        answer(
            verdicts.map { verdict in
                switch verdict {
                case .wanted: 0
                case .alreadyHere: 304
                case .conflict(let current):
                    namesRevision ? ["status": 409, "rev": .string(current.text)] : 409
                }
            }
        )
    }

    private static func answer(_ items: [JSONValue]) -> [UInt8] {
        let zero: JSONValue = 0
        let trailing = items.reversed().prefix { $0 == zero }.count
        return json(items.dropLast(trailing))
    }

    /// What a peer answered to our `changes`.
    enum Answer: Hashable {
        case notWanted
        case send(known: [RevisionID])
        case refused(Int)
    }

    static func parseAnswer(_ body: [UInt8], count: Int) throws(ReplyError) -> [Answer] {
        let items = body.isEmpty ? [] : try list(body)
        guard items.count <= count else { throw ReplyError("BLIP", 400, "more answers than changes") }
        return (0..<count).map { index in
            guard index < items.count else { return .notWanted }
            if items[index].kind == .array {
                return .send(known: items[index].items.compactMap { $0.string.flatMap { RevisionID($0) } })
            }
            let status = Self.status(items[index])
            return status == 0 ? .notWanted : .refused(status)
        }
    }
}

/// One entry of `proposeChanges` (replication.md §8): `[docID, revID, serverRevID?, bodySize?]`.
package struct ProposedChange: Hashable, Sendable {
    package let documentID: String
    package let revision: RevisionID
    package let serverRevision: RevisionID?
    /// See ``AnnouncedChange/knowledge``.
    package internal(set) var knowledge: String?
}

enum ProposeChangesMessage {
    static func parse(_ body: [UInt8]) throws(ReplyError) -> [ProposedChange] {
        try ChangesMessage.list(body).map { (entry) throws(ReplyError) in
            guard let id = entry[0]?.string, DocumentID.isValidOnWire(id),
                let revision = entry[1]?.string.flatMap({ RevisionID(received: $0) })
            else { throw ReplyError("BLIP", 400, "invalid entry of proposeChanges") }
            let server = entry[2]?.string ?? ""
            guard server.isEmpty || RevisionID(server) != nil else {
                throw ReplyError("BLIP", 400, "invalid server revision in proposeChanges")
            }
            return ProposedChange(documentID: id, revision: revision, serverRevision: RevisionID(server))
        }
    }

    static func body(_ changes: [LocalChange]) -> [UInt8] {
        ChangesMessage.json(
            changes.map { change in
                .array([
                    .string(change.documentID), .string(change.revision.text),
                    .string(change.remoteAncestor?.text ?? ""), JSONValue(max(1, change.bodySize)),
                ])
            }
        )
    }

    enum Answer: Hashable {
        case send
        case alreadyThere
        case conflict(HubState)
        case refused(Int)
    }

    static func parseAnswer(_ body: [UInt8], count: Int) throws(ReplyError) -> [Answer] {
        let items = body.isEmpty ? [] : try ChangesMessage.list(body)
        guard items.count <= count else { throw ReplyError("BLIP", 400, "more answers than proposals") }
        return (0..<count).map { index in
            guard index < items.count else { return .send }
            let item = items[index]
            let status = ChangesMessage.status(item.kind == .object ? item["status"] : item)
            switch status {
            case 0: return .send
            case 304: return .alreadyThere
            case 409:
                guard let text = items[index]["rev"]?.string else { return .conflict(.unknown) }
                return .conflict(text.isEmpty ? .hasNone : RevisionID(text).map { .has($0) } ?? .unknown)
            default: return .refused(status)
            }
        }
    }
}

extension RevisionID {
    /// More edits than any document has had, and so few that an app's next ones can be counted too.
    private static let highestReceived: UInt32 = 1 << 31

    /// Reads a revision ID that a peer made up; nil for what is none, or too high to go on from.
    init?(received text: some StringProtocol) {
        self.init(text)
        guard generation <= Self.highestReceived else { return nil }
    }
}
