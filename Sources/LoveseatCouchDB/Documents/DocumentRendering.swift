import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatStorage

/// The options of a request for documents: the members and attachments that a client wants.
struct DocumentOptions: Hashable, Sendable {
    var withRevisions = false
    var withRevisionInfo = false
    var withConflicts = false
    var withDeletedConflicts = false
    var withSequence = false
    /// Whether attachments come with their content.
    var withAttachments = false
    var withEncoding = false
    /// Revisions that the client has: only newer attachments come with their content.
    var attachmentsSince: [RevisionID]?

    init() {}

    init(_ query: Query) throws(CouchDBError) {
        let isMeta = query.isSet("meta")
        withRevisions = query.isSet("revs")
        withRevisionInfo = isMeta || query.isSet("revs_info")
        withConflicts = isMeta || query.isSet("conflicts")
        withDeletedConflicts = isMeta || query.isSet("deleted_conflicts")
        withSequence = query.isSet("local_seq")
        withAttachments = query.isSet("attachments")
        withEncoding = query.isSet("att_encoding_info")
        attachmentsSince = try query.revisions("atts_since")
    }

    /// The ancestors that the answer takes, for a client that names these revisions.
    func neededAncestors(with named: [RevisionID]) -> NeededAncestors {
        withRevisions || withRevisionInfo ? .all : .named(named + (attachmentsSince ?? []))
    }

    /// Whether the answer depends on more than the revision.
    var dependsOnMore: Bool { withRevisionInfo || withConflicts || withDeletedConflicts || withSequence }
}

/// Writes documents.
struct DocumentRenderer: Sendable {
    /// How the content of attachments comes.
    enum Form: Sendable { case inline, parts }

    let options: DocumentOptions
    var form = Form.inline
    let blobs: BlobFiles
    let names: ContentNames

    func render(
        _ branch: DocumentBranch,
        of id: String,
        in branches: DocumentBranches,
        sequence: JSONValue? = nil
    ) -> RenderedDocument {
        var writer = Writer()
        writer.member("_id", .string(id))
        writer.member("_rev", .string(branch.id.text))
        if branch.isDeleted { writer.member("_deleted", true) }
        let body = branch.body ?? .emptyObject
        let inProperties = BlobAttachments.all(in: body, generation: branch.id.generation)
        let attachments = (StoredAttachment.all(in: body) + inProperties).compactMap {
            measured($0, isDeleted: branch.isDeleted)
        }
        if options.withRevisions {
            writer.begin("_revisions")
            writer.text(RevisionText.revisions(branch.history, listed: branches.listed))
        }
        if options.withRevisionInfo { writer.member("_revs_info", info(branch, branches)) }
        if options.withSequence, let sequence { writer.member("_local_seq", sequence) }
        if options.withConflicts {
            let conflicts = branches.conflicts.filter { $0.id != branch.id }
            if !conflicts.isEmpty {
                writer.member("_conflicts", .array(conflicts.map { .string($0.id.text) }))
            }
        }
        if options.withDeletedConflicts {
            let deleted = branches.leaves.dropFirst().filter { $0.isDeleted && $0.id != branch.id }
            if !deleted.isEmpty {
                writer.member("_deleted_conflicts", .array(deleted.map { .string($0.id.text) }))
            }
        }
        let parts = write(attachments, known(inProperties, branch, branches), branch, &writer)
        writer.finish(body, hasAttachments: !StoredAttachment.all(in: body).isEmpty)
        return RenderedDocument(pieces: writer.pieces, parts: parts)
    }

    /// An attachment with the length of its stored content, because the length in a blob property is not verified. Nil for an attachment of
    /// a deletion whose content is not here: every listed attachment must be served.
    private func measured(_ attachment: StoredAttachment, isDeleted: Bool) -> StoredAttachment? {
        guard let stored = blobs.length(attachment.digest).map({ Int(clamping: $0) }) else {
            return isDeleted ? nil : attachment
        }
        var measured = attachment
        if attachment.encoding == nil { measured.length = stored } else { measured.encodedLength = stored }
        return measured
    }

    private func info(_ branch: DocumentBranch, _ branches: DocumentBranches) -> JSONValue {
        .array(
            RevisionText.listed(branch.history, branches.listed).map { id in
                let state = branches.state(of: id)
                let status =
                    state?.hasContent != true
                    ? "missing" : state?.isDeleted == true ? "deleted" : "available"
                return ["rev": .string(id.text), "status": .string(status)]
            }
        )
    }

    /// The generation from which on attachments come with their content; nil for none.
    private func firstWanted(_ branch: DocumentBranch) -> Int? {
        guard let since = options.attachmentsSince else { return options.withAttachments ? 0 : nil }
        let known = since.filter { branch.history.contains($0) }.map { Int($0.generation) }
        return (known.max() ?? 0) + 1
    }

    /// The names of attachments for blobs that a revision which the client has contains as well.
    ///
    /// At which generation a blob was added is not stored, so this needs the body of that revision.
    private func known(_ blobs: [StoredAttachment], _ branch: DocumentBranch, _ branches: DocumentBranches)
        -> Set<ExactText>
    {
        guard let since = options.attachmentsSince, !blobs.isEmpty else { return [] }
        var names: Set<ExactText> = []
        for id in since where branch.history.dropFirst().contains(id) {
            guard let body = branches.revision(id)?.body else { continue }
            let old = Set(BlobAttachments.all(in: body, generation: branch.id.generation))
            names.formUnion(blobs.lazy.filter { old.contains($0) }.map { ExactText($0.name) })
        }
        return names
    }

    private func write(
        _ attachments: [StoredAttachment],
        _ known: Set<ExactText>,
        _ branch: DocumentBranch,
        _ writer: inout Writer
    ) -> [StoredAttachment] {
        guard !attachments.isEmpty else { return [] }
        let wanted = firstWanted(branch)
        var parts: [StoredAttachment] = []
        writer.begin("_attachments")
        for (index, attachment) in attachments.enumerated() {
            let isKnown = known.contains(ExactText(attachment.name))
            let hasContent = !isKnown && (wanted.map { attachment.position >= $0 } ?? false)
            let name = names.name(attachment.digest)
            var entry = attachment.description(
                withEncoding: options.withEncoding || form == .parts,
                naming: name
            )
            writer.text(
                (index == 0 ? "{" : ",") + JSONText(canonical: .string(attachment.name)).description + ":"
            )
            guard hasContent else {
                if form == .parts, !options.withEncoding {
                    entry = attachment.description(withEncoding: false, naming: name)
                }
                // The client knows the position, and compares it with ours if there is one.
                if isKnown { entry["revpos"] = nil }
                entry["stub"] = true
                entry["length"] = JSONValue(attachment.length)
                writer.text(entry.description)
                continue
            }
            switch form {
            case .parts:
                entry["follows"] = true
                entry["length"] = JSONValue(attachment.length)
                writer.text(entry.description)
                parts.append(attachment)
            case .inline:
                writer.text(String(entry.description.dropLast()) + ",\"data\":\"")
                let inflates = attachment.encoding != nil && !options.withEncoding
                writer.content(attachment.digest, inflates: inflates)
                writer.text("\"}")
            }
        }
        writer.text("}")
        return parts
    }

    /// Writes an object's members.
    private struct Writer {
        var pieces: [RenderedDocument.Piece] = []
        private var bytes: [UInt8] = [UInt8(ascii: "{")]

        mutating func text(_ text: String) { bytes.append(contentsOf: text.utf8) }

        mutating func begin(_ name: String) {
            text((bytes.count > 1 || !pieces.isEmpty ? "," : "") + "\"\(name)\":")
        }

        mutating func member(_ name: String, _ value: JSONValue) {
            begin(name)
            bytes.append(contentsOf: JSONText(canonical: value).bytes)
        }

        mutating func content(_ digest: BlobDigest, inflates: Bool) {
            pieces += [.bytes(bytes), .base64(digest, inflates: inflates)]
            bytes = []
        }

        /// Adds the members of a stored body, and ends the object.
        mutating func finish(_ body: JSONText, hasAttachments: Bool) {
            if hasAttachments {
                for (key, value) in JSONElement(body).members where key != "_attachments" {
                    text("," + JSONText(canonical: .string(key)).description + ":")
                    bytes.append(contentsOf: value.bytes)
                }
                bytes.append(UInt8(ascii: "}"))
            } else if body.bytes.count > 2 {
                bytes.append(UInt8(ascii: ","))
                bytes.append(contentsOf: body.bytes.dropFirst())
            } else {
                bytes.append(UInt8(ascii: "}"))
            }
            pieces.append(.bytes(bytes))
        }
    }
}
