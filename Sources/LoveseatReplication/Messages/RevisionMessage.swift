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
        private let revisions: Result<[RevisionID], ReplyError>

        /// Newest first, the revision itself included; empty for a header that does not pass its check.
        var history: [RevisionID] { (try? revisions.get()) ?? [] }
        /// The first revision of the line, where the history does not reach it.
        var origin: RevisionID? { properties[ProtocolExtensions.origin].flatMap { RevisionID(received: $0) } }

        init(_ message: Message) {
            properties = message.properties
            documentID = properties["id"] ?? ""
            sequence = properties["sequence"].flatMap { RemoteSequence(json: $0) }
            let deleted = properties["deleted"] ?? "0"
            isDeleted = deleted != "0" && deleted.lowercased() != "false"
            deltaSource = properties["deltaSrc"].flatMap { RevisionID(received: $0) }
            isReplacement = properties["replacedRev"] != nil
            revisions = Self.revisions(properties)
        }

        private static func revisions(_ properties: MessageProperties) -> Result<[RevisionID], ReplyError> {
            guard let revision = properties["rev"].flatMap({ RevisionID(received: $0) }) else {
                return .failure(ReplyError("HTTP", 400, "received invalid version ID"))
            }
            do throws(ReplyError) {
                return .success([revision] + (try list(properties["history"])))
            } catch { return .failure(error) }
        }

        /// The revision itself; nil if it is not valid.
        var revisionID: RevisionID? { history.first }

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

        /// Takes the tree off the end of a body, if the message brings one (docs/extensions.md).
        func split(_ body: [UInt8], from peer: RevisionTree.PeerKind) throws(ReplyError) -> (
            body: [UInt8], knowledge: TreeKnowledge?
        ) {
            guard let text = properties[TreeMessage.property] else { return (body, nil) }
            guard peer == .loveseat, let count = Int(text), count > 0, count <= body.count else {
                throw ReplyError(
                    "HTTP",
                    400,
                    "invalid tree: nobody announced it, or it is longer than the body"
                )
            }
            return (Array(body.dropLast(count)), try TreeMessage.parse(body.suffix(count)).knowledge)
        }
    }

    struct Content {
        let body: JSONText
        /// Blobs that the body refers to.
        let blobs: [BlobReference]
        /// The document left every channel that this peer may see.
        let isRemoved: Bool
        /// The body names content of blobs that the peer's table of attachments does not list.
        let contradictsTable: Bool
    }

    /// Reads a whole body (replication.md §9.4, steps 6 to 9).
    ///
    /// `generation`: of the revision; nil to take the word of the table of attachments in every case.
    static func content(_ bytes: [UInt8], generation: UInt32?) throws(ReplyError) -> Content {
        let stored = try Attachments.stored(bytes, generation: generation)
        let blobs = BlobReference.all(in: stored.body)
        if let listed = stored.listed?.union(stored.preferred),
            let missing = blobs.first(where: { !listed.contains($0.digest.text) })
        {
            throw ReplyError("LiteCore", 7, "blob \(missing.digest) is not among the attachments")
        }
        return Content(
            body: stored.body,
            blobs: blobs,
            isRemoved: stored.isRemoved,
            contradictsTable: !stored.preferred.isEmpty
        )
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
        if content.revision != change.revision, !change.isProposal {
            properties["replacedRev"] = change.revision.text
        }
        properties["sequence"] = String(change.sequence)
        if change.isProposal { properties["noconflicts"] = "true" }
        if content.isDeleted { properties["deleted"] = "1" }
        if !content.history.isEmpty { properties["history"] = list(content.history) }
        properties[ProtocolExtensions.origin] = content.origin?.text
        var body =
            addsAttachments
            ? Attachments.adding(to: content.body, generation: content.revision.generation).bytes
            : content.body.bytes
        if let base = content.deltaBase, let delta = delta(base, body, addsAttachments: addsAttachments) {
            properties["deltaSrc"] = base.revision.text
            body = delta
        }
        if let knowledge = content.knowledge {
            let tree = TreeMessage.body(knowledge, current: content.revision)
            properties[TreeMessage.property] = String(tree.count)
            body += tree
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
            addsAttachments
            ? Attachments.adding(to: base.body, generation: base.revision.generation) : base.body
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
        let old = delta["_attachments"] == nil ? base : Attachments.adding(to: base, generation: 1)
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
            guard let revision = RevisionID(received: part.drop { $0 == " " }) else {
                throw ReplyError("LiteCore", 4, "received invalid history")
            }
            revisions.append(revision)
        }
        return revisions
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
            while next > ancestor.generation, next - ancestor.generation > 1, history.count + 1 < limit {
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
