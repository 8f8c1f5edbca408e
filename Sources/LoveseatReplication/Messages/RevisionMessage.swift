import LoveseatBLIP
package import LoveseatModel

/// A `rev` message (replication.md §9).
package enum RevisionMessage {
    /// What the properties of a received one say.
    struct Header {
        let documentID: String
        let sequence: RemoteSequence?
        let isDeleted: Bool
        let deltaSource: RevisionID?
        /// A newer revision comes in place of the announced one, under a sequence of its own perhaps.
        let isReplacement: Bool
        private let properties: MessageProperties
        private let revisions: Result<(history: [RevisionID], deletedBranch: [RevisionID]), ReplyError>

        init(_ message: Message) {
            properties = message.properties
            documentID = properties["id"] ?? ""
            sequence = properties["sequence"].flatMap { RemoteSequence(json: $0) }
            let deleted = properties["deleted"] ?? "0"
            isDeleted = deleted != "0" && deleted.lowercased() != "false"
            deltaSource = properties["deltaSrc"].flatMap { RevisionID($0) }
            isReplacement = properties["replacedRev"] != nil
            revisions = Self.revisions(properties)
        }

        private static func revisions(_ properties: MessageProperties) -> Result<
            (history: [RevisionID], deletedBranch: [RevisionID]), ReplyError
        > {
            guard let revision = properties["rev"].flatMap({ RevisionID($0) }) else {
                return .failure(ReplyError("HTTP", 400, "received invalid version ID"))
            }
            do throws(ReplyError) {
                let history = [revision] + (try list(properties["history"]))
                return .success((history, try list(properties["deleted_branch"])))
            } catch { return .failure(error) }
        }

        /// Throws what is wrong (replication.md §9.4, steps 1 to 4).
        func check(needsSequence: Bool) throws(ReplyError) {
            guard properties["error"] == nil else {
                throw ReplyError("HTTP", 502, "Peer failed to send revision")
            }
            guard DocumentID.isValidOnWire(documentID) else {
                throw ReplyError("HTTP", 400, "received invalid docID '\(documentID)'")
            }
            _ = try revisions.get()
            guard sequence != nil || !needsSequence else {
                throw ReplyError("HTTP", 400, "received 'rev' message with missing 'sequence'")
            }
            guard deltaSource != nil || properties["deltaSrc"] == nil else {
                throw ReplyError("HTTP", 400, "received invalid deltaSrc")
            }
        }

        /// The revision with its body; the header must have been checked.
        func revision(_ body: JSONText) -> IncomingRevision {
            let (history, deletedBranch) = (try? revisions.get()) ?? ([], [])
            return IncomingRevision(
                documentID: documentID,
                history: history,
                isDeleted: isDeleted,
                body: body,
                noConflicts: properties.bool("noconflicts"),
                deletedBranch: deletedBranch
            )
        }
    }

    struct Content {
        let body: JSONText
        /// Blobs that the body refers to.
        let blobs: [BlobReference]
        /// The document left every channel that this peer may see.
        let isRemoved: Bool
    }

    /// Reads a whole body (replication.md §9.4, steps 6 to 9).
    static func content(_ bytes: [UInt8]) throws(ReplyError) -> Content {
        let (body, attachments, isRemoved) = try storedBody(bytes)
        let blobs = BlobReference.all(in: body)
        if let attachments, let missing = blobs.first(where: { !attachments.contains($0.digest.text) }) {
            throw ReplyError("LiteCore", 7, "blob \(missing.digest) is not among the attachments")
        }
        return Content(body: body, blobs: blobs, isRemoved: isRemoved)
    }

    /// The text to store: as it came, without the reserved properties at the top.
    private static func storedBody(
        _ bytes: [UInt8]
    ) throws(ReplyError) -> (body: JSONText, attachments: Set<String>?, isRemoved: Bool) {
        guard !bytes.isEmpty else { return (.emptyObject, nil, false) }
        let element: JSONElement
        do { element = try JSONElement(parsing: bytes) } catch { throw ReplyError("HTTP", 400, "\(error)") }
        guard element.kind == .object else { throw ReplyError("HTTP", 400, "the body is not a JSON object") }
        guard element.members.contains(where: { $0.key.hasPrefix("_") }) else {
            return (JSONText(trusted: bytes), nil, false)
        }
        let isRemoved = element["_removed"]?.bool == true
        let listed = element["_attachments"].map { Set($0.members.compactMap { $0.value["digest"]?.string }) }
        var kept = element.value.object ?? [:]
        let legacy = kept["_attachments"].flatMap { remainingAttachments($0, in: &kept) }
        kept = kept.filter { !$0.key.hasPrefix("_") }
        kept["_attachments"] = legacy
        return (JSONText(canonical: .object(kept)), listed, isRemoved)
    }

    /// Attachments that no blob of the body stands for (replication.md §11.5); nil if every one has one.
    private static func remainingAttachments(_ attachments: JSONValue, in body: inout JSONObject)
        -> JSONValue?
    {
        var rest = attachments.object ?? [:]
        for (name, attachment) in rest {
            guard name.hasPrefix("blob_") else { continue }
            let path = name.dropFirst(5)
            if path.first?.isNumber == true {
                rest[name] = nil
            } else if path.hasPrefix("/") {
                let parts = path.dropFirst().split(separator: "/").map(String.init)
                var root = JSONValue.object(body)
                guard root.adoptAttachment(attachment, at: parts[...]) else { continue }
                body = root.object ?? body
                rest[name] = nil
            }
        }
        return rest.isEmpty ? nil : .object(rest)
    }

    static func message(
        _ change: QueuedRevision,
        _ content: SendableRevision,
        collection: Int?,
        addsAttachments: Bool,
        compressionThreshold: Int
    ) -> Message {
        var properties: MessageProperties = ["Profile": "rev"]
        properties["collection"] = collection.map(String.init)
        properties["id"] = change.documentID
        properties["rev"] = content.revision.text
        if content.revision != change.revision { properties["replacedRev"] = change.revision.text }
        properties["sequence"] = String(change.sequence)
        if change.isProposal { properties["noconflicts"] = "true" }
        if content.isDeleted { properties["deleted"] = "1" }
        if !content.history.isEmpty { properties["history"] = list(content.history) }
        if !content.deletedBranch.isEmpty { properties["deleted_branch"] = list(content.deletedBranch) }
        var body =
            addsAttachments
            ? withAttachments(content.body, generation: content.revision.generation).bytes
            : content.body.bytes
        if let base = content.deltaBase, let delta = delta(base, body, addsAttachments: addsAttachments) {
            properties["deltaSrc"] = base.revision.text
            body = delta
        }
        return Message(properties, body: body, isCompressed: body.count >= compressionThreshold)
    }

    /// Bodies shorter than this, in bytes, are not worth a delta (replication.md §16).
    private static let shortestForDelta = 200

    /// The difference from what the peer has; nil if it is no shorter than the body.
    private static func delta(
        _ base: SendableRevision.DeltaBase,
        _ body: [UInt8],
        addsAttachments: Bool
    ) -> [UInt8]? {
        guard body.count >= shortestForDelta, base.body != .emptyObject else { return nil }
        // Both in the form that the peer sees.
        let old =
            addsAttachments ? withAttachments(base.body, generation: base.revision.generation) : base.body
        let delta = JSONDelta.create(
            from: JSONElement(old).value,
            to: JSONElement(JSONText(trusted: body)).value
        )
        let bytes = JSONText(canonical: delta).bytes
        return bytes.count < body.count ? bytes : nil
    }

    /// The body that a received delta makes.
    package static func expand(_ delta: [UInt8], base: JSONText) -> DeltaExpansion {
        guard let delta = try? JSONElement(parsing: delta) else { return .corrupt }
        // A delta that speaks of attachments was made against a body that had them (replication.md §11.5).
        let old = delta["_attachments"] == nil ? base : withAttachments(base, generation: 1)
        do throws(JSONDelta.Failure) {
            let body = try JSONDelta.apply(delta.value, to: JSONElement(old).value)
            guard case .object = body else { return .corrupt }
            return .body(JSONText(canonical: body).bytes)
        } catch { return .corrupt }
    }

    private static func list(_ revisions: [RevisionID]) -> String {
        revisions.map(\.text).joined(separator: ",")
    }

    fileprivate static func list(_ text: String?) throws(ReplyError) -> [RevisionID] {
        var revisions: [RevisionID] = []
        for part in (text ?? "").split(separator: ",") {
            guard let revision = RevisionID(part.drop { $0 == " " }) else {
                throw ReplyError("LiteCore", 4, "received invalid history")
            }
            revisions.append(revision)
        }
        return revisions
    }

    /// The body with an `_attachments` table, for peers that do not look for blobs in it (replication.md §11.5).
    static func withAttachments(_ body: JSONText, generation: UInt32) -> JSONText {
        guard !BlobReference.all(in: body).isEmpty else { return body }
        var value = JSONElement(body).value
        var table = (value["_attachments"]?.object ?? [:]).filter { !$0.key.hasPrefix("blob_") }
        value.forEachBlob(path: "blob_") { path, blob in
            var stub = blob
            stub["@type"] = nil
            stub["stub"] = true
            stub["revpos"] = JSONValue(generation)
            table[path] = stub
        }
        value["_attachments"] = .object(table)
        return JSONText(canonical: value)
    }
}

extension JSONValue {
    /// Visits every blob with its path; does not look inside a blob.
    fileprivate func forEachBlob(path: String, _ visit: (String, JSONValue) -> Void) {
        switch self {
        case .object where self["@type"]?.string == "blob": visit(path, self)
        case .object(let members):
            for (key, value) in members where !(path == "blob_" && key.hasPrefix("_")) {
                value.forEachBlob(path: "\(path)/\(key)", visit)
            }
        case .array(let items):
            for (index, item) in items.enumerated() { item.forEachBlob(path: "\(path)/\(index)", visit) }
        default: break
        }
    }

    /// Gives a blob at a path the members of its attachment if they differ in digest; false if no blob is there.
    fileprivate mutating func adoptAttachment(_ attachment: JSONValue, at path: ArraySlice<String>) -> Bool {
        guard let first = path.first else {
            guard self["@type"]?.string == "blob" else { return false }
            guard self["digest"] != attachment["digest"] else { return true }
            for key in (object ?? [:]).keys where attachment[key] != nil { self[key] = attachment[key] }
            for key in ["length", "content_type"] where attachment[key] == nil { self[key] = nil }
            return true
        }
        if case .array(var items) = self, let index = Int(first), items.indices.contains(index) {
            guard items[index].adoptAttachment(attachment, at: path.dropFirst()) else { return false }
            self = .array(items)
            return true
        }
        guard var child = self[first], child.adoptAttachment(attachment, at: path.dropFirst()) else {
            return false
        }
        self[first] = child
        return true
    }
}

/// The history that goes with a revision (replication.md §9.1).
package enum RevisionHistory {
    /// The parents of a revision to send: newest first, up to one the peer knows, generations without gaps.
    package static func toSend(
        _ ancestors: [RevisionID],
        of revision: RevisionID,
        known: [RevisionID],
        limit: Int
    ) -> [RevisionID] {
        let known = Set(known)
        var history: [RevisionID] = []
        var next = revision.generation
        for ancestor in ancestors {
            // Pruned generations get names of their own, so that the receiver sees an unbroken chain.
            while next > ancestor.generation + 1, history.count + 1 < limit {
                next -= 1
                history.append(
                    RevisionID(generation: next, digest: fadedDigest(of: revision, generation: next))
                )
            }
            history.append(ancestor)
            next = ancestor.generation
            if known.contains(ancestor) { break }
        }
        guard history.count + 1 > limit else { return history }
        let common = history.last.flatMap { known.contains($0) ? $0 : nil }
        history = Array(history.prefix(max(0, limit - 1)))
        if let common, !history.isEmpty { history[history.count - 1] = common }
        return history
    }

    private static func fadedDigest(of revision: RevisionID, generation: UInt32) -> [UInt8] {
        let hash = revision.text.utf8.reduce(UInt64(generation) &+ 0xCBF2_9CE4_8422_2325) {
            ($0 ^ UInt64($1)) &* 0x100_0000_01B3
        }
        return [0xFA, 0xDE, 0xD0, 0x00] + (0..<8).map { UInt8(truncatingIfNeeded: hash >> (8 * $0)) }
    }
}
