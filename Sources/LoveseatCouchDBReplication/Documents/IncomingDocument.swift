import LoveseatAssertions
package import LoveseatModel

/// A document as a peer of CouchDB's wire sends it (protocol/couchdb.md §2.1).
package struct IncomingDocument: Sendable {
    /// The `_id`; nil if there is none.
    package var id: String?
    /// The revision that it is, or that it edits, with its ancestors, newest first; empty if it names none.
    package var history: [RevisionID]
    package let isDeleted: Bool
    /// Whether a gateway says by it that the document is not for this peer. It has no content.
    package let isRemoved: Bool
    /// Whether it says when it expires, as documents of gateways do. Nothing expires by that here.
    package let hasExpiration: Bool
    /// Its attachments, in the order of the text.
    package let attachments: [IncomingAttachment]
    /// The members without reserved names, canonical.
    package let body: JSONText

    /// Members that carry no content, or that other peers add.
    private static let ignored: Set<ExactText> = [
        "_revs_info", "_local_seq", "_conflicts", "_deleted_conflicts", "_access", "_cv", "_vv",
    ]
    private static let kept: Set<ExactText> = [
        "_replication_state", "_replication_state_time", "_replication_state_reason", "_replication_id",
        "_replication_stats",
    ]

    /// `takenOut`: the attachments that ``InlineContentScanner`` took out of the text.
    ///
    /// - Throws: ``CouchDBError`` for an element that is not a document.
    package init(_ element: JSONElement, takenOut: TakenOutContents? = nil) throws(CouchDBError) {
        guard element.kind == .object else { throw .badRequest("Document must be a JSON object") }
        var (id, revision): (String?, RevisionID?)
        var history: [RevisionID] = []
        var (isDeleted, isRemoved, hasExpiration) = (false, false, false)
        var attachments: [IncomingAttachment] = []
        var members: [(key: [UInt8], value: JSONElement)] = []
        for (rawKey, value) in element.rawMembers {
            guard let rawKey else {
                impossible("a member of an object has no key")
                continue
            }
            let text = rawKey.bytes.dropFirst().dropLast()
            if text.first != UInt8(ascii: "_"), text.first != UInt8(ascii: "\\") {
                members.append((Array(rawKey.bytes), value))
                continue
            }
            let key = rawKey.string ?? ""
            switch key {
            case "_id": id = try Self.identifier(value)
            case "_rev":
                guard let text = value.string else { throw .invalidRevision }
                if !text.isEmpty { revision = try RevisionText.parse(text) }
            case "_deleted":
                guard let flag = value.bool else {
                    throw CouchDBError(400, "doc_validation", "_deleted is not a boolean")
                }
                isDeleted = flag
            // With any other value, it is a reserved member that no document has.
            case "_removed" where value.bool == true: isRemoved = true
            case "_exp": hasExpiration = true
            case "_revisions": history = try RevisionText.history(value)
            case "_attachments": attachments = try IncomingAttachment.all(value, takenOut)
            case _ where Self.ignored.contains(ExactText(key)): continue
            case _ where Self.kept.contains(ExactText(key)) || !key.beginsExactly(with: "_"):
                members.append((Array(rawKey.bytes), value))
            default:
                throw .reservedMember(key)
            }
        }
        self.id = id
        self.isDeleted = isDeleted
        self.isRemoved = isRemoved
        self.hasExpiration = hasExpiration
        self.attachments = attachments
        self.history = history.isEmpty ? revision.map { [$0] } ?? [] : history
        body = try Self.body(members, element)
    }

    private static func identifier(_ value: JSONElement) throws(CouchDBError) -> String {
        guard let id = value.string else {
            throw .illegalID("Document id must be a string")
        }
        return id
    }

    /// - Throws: ``CouchDBError`` for an ID that no document can have.
    package static func check(_ id: String) throws(CouchDBError) {
        guard !id.isEmpty else { throw .illegalID("Document id must not be empty") }
        if id.utf8.first != UInt8(ascii: "_") { return }
        guard id.beginsExactly(with: "_design/") || id.beginsExactly(with: "_local/"), id != "_design/",
            id != "_local/"
        else {
            throw .illegalID("Only reserved document ids may start with underscore.")
        }
    }

    /// - Throws: ``CouchDBError`` for an ID that no document can have which replicates.
    package static func checkReplicated(_ id: String) throws(CouchDBError) {
        try check(id)
        guard !id.beginsExactly(with: "_local/") else {
            throw .illegalID("local documents do not replicate")
        }
    }

    /// The canonical text of the members. Most documents' keys have no escapes, and then the values are copied.
    private static func body(_ members: [(key: [UInt8], value: JSONElement)], _ whole: JSONElement)
        throws(CouchDBError) -> JSONText
    {
        guard !members.contains(where: { $0.key.contains(UInt8(ascii: "\\")) }) else {
            var object = JSONObject()
            for (key, value) in whole.members
            where !key.beginsExactly(with: "_") || kept.contains(ExactText(key)) {
                object[key] = value.value
            }
            return try valid(JSONElement(JSONText(canonical: .object(object))), in: 0)
        }
        // If a key occurs twice, the last one counts.
        let sorted = members.enumerated().sorted { one, other in
            if one.element.key == other.element.key { return one.offset < other.offset }
            return one.element.key.lexicographicallyPrecedes(other.element.key)
        }.map(\.element)
        var bytes: [UInt8] = [UInt8(ascii: "{")]
        bytes.reserveCapacity(whole.bytes.count)
        for (index, member) in sorted.enumerated() {
            if index + 1 < sorted.count, sorted[index + 1].key == member.key { continue }
            if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
            bytes.append(contentsOf: member.key)
            bytes.append(UInt8(ascii: ":"))
            bytes.append(contentsOf: try valid(member.value, in: 1).bytes)
        }
        bytes.append(UInt8(ascii: "}"))
        return JSONText(trusted: bytes)
    }

    /// The canonical text of a value, which is so many levels deep in its document.
    ///
    /// - Throws: `bad_request` for a number that no peer can hold, and for a document that is nested too deeply.
    private static func valid(_ value: JSONElement, in level: Int) throws(CouchDBError) -> JSONText {
        let levels = JSONLimits.standard.maximumDepth - level
        do { return try JSONText(validating: value, levels: levels) } catch { throw .invalid(error) }
    }
}
