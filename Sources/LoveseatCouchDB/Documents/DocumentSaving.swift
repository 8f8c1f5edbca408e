import LoveseatAssertions
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatStorage

extension PreparedDocument {
    /// Adds an attachment whose content is in an earlier revision, unless it only repeats a blob of the body.
    mutating func addStub(_ attachment: IncomingAttachment, _ pins: BlobPins) throws {
        let (name, digest) = (attachment.name, attachment.digest)
        guard let blob = try BlobAttachments.repeated(name, digest, in: body, md5: pins.md5) else {
            if let blob = BlobAttachments.blob(name, in: body) { pins.add(blob.digest) }
            return attachments.append(.stub(attachment))
        }
        pins.add(blob.digest)
        if !pins.blobs.contains(blob.digest) { missingBlob = attachment.name }
    }

    /// Adds an attachment that came, unless it is the content of a blob of the body, which has its place there.
    mutating func add(_ attachment: Attachment, _ digest: BlobDigest) {
        received.insert(digest)
        guard case .ready(let stored, _) = attachment else {
            return impossible("an attachment without content comes with the content \(digest)")
        }
        if BlobAttachments.blob(stored.name, in: body)?.digest == digest { return }
        attachments.append(attachment)
    }
}

/// Saves documents of clients.
enum DocumentSaving {
    /// Stores the inline content of a document. `contents`: the attachments that were taken out of its text.
    ///
    /// - Throws: ``CouchDBError``; an error of the disk.
    static func prepare(
        _ document: IncomingDocument,
        id: String,
        _ contents: InlineContents? = nil,
        pins: BlobPins
    ) throws -> PreparedDocument {
        var prepared = PreparedDocument(document, id: id)
        // Nothing is stored of a document that is refused for one of them.
        let short = try document.attachments.map(decoded)
        for (attachment, content) in zip(document.attachments, short) {
            let digest: BlobDigest
            let length: Int
            switch attachment.content {
            case .inline: (digest, length) = (try pins.store(content), content.count)
            case .takenOut(let number, let size):
                guard let stored = try contents?.store(number, pins) else {
                    impossible("the content of attachment \(number) was taken out of another request")
                    continue
                }
                (digest, length) = (stored, size)
            case .stub, .follows:
                try prepared.addStub(attachment, pins)
                continue
            }
            prepared.add(try ready(attachment, digest: digest, storedLength: length, pins), digest)
        }
        try checkCompressedBlobs(of: prepared.body, pins)
        return prepared
    }

    /// Verifies the blobs in properties that are said to be compressed: whoever reads one inflates it, and relies on its length. The body is what
    /// its revision names, so that a wrong statement in it cannot be mended here. A blob that is not here is refused later.
    ///
    /// - Throws: `forbidden` for a blob that is not what the document says.
    static func checkCompressedBlobs(of body: JSONText, _ pins: BlobPins) throws {
        for blob in BlobAttachments.compressed(in: body) where pins.blobs.contains(blob.digest) {
            let (stored, inflated) = (
                pins.blobs.length(blob.digest), try pins.inflatedLength(of: blob.digest)
            )
            guard let inflated, blob.length == nil || blob.length == UInt64(inflated),
                blob.encodedLength == nil || blob.encodedLength.flatMap({ UInt64(exactly: $0) }) == stored
            else {
                throw CouchDBError.forbidden(
                    "blob \(blob.digest) is not the compressed content that the document says: send the document without `encoding`"
                )
            }
        }
    }

    /// Refuses a document with inline content that is not Base64, before anything is stored.
    static func checkContents(of document: IncomingDocument) throws(CouchDBError) {
        for attachment in document.attachments { _ = try decoded(attachment) }
    }

    /// The content that an attachment has in Base64; empty for those whose content is elsewhere.
    private static func decoded(_ attachment: IncomingAttachment) throws(CouchDBError) -> [UInt8] {
        switch attachment.content {
        case .stub, .takenOut: return []
        case .inline(let text): return try decode(text, attachment.name)
        case .follows: throw .invalidAttachment(attachment.name)
        }
    }

    /// The content of an inline attachment.
    static func decode(_ text: JSONElement, _ name: String) throws(CouchDBError) -> [UInt8] {
        guard let content = BulkBase64.decode(Array((text.string ?? "").utf8)) else {
            throw .invalidAttachment(name)
        }
        return content
    }

    /// An attachment whose content was stored. `isInflated`: whether it came compressed, and is not stored so. Content that is not
    /// gzip is stored as if its client had not said so.
    static func ready(
        _ attachment: IncomingAttachment,
        digest: BlobDigest,
        storedLength: Int,
        isInflated: Bool = false,
        _ pins: BlobPins
    ) throws -> PreparedDocument.Attachment {
        let isCompressed = attachment.encoding != nil && !isInflated
        let inflated = isCompressed ? try pins.inflatedLength(of: digest) : nil
        var stored = StoredAttachment(
            name: attachment.name,
            contentType: attachment.contentType ?? "application/octet-stream",
            digest: digest,
            length: inflated ?? storedLength,
            position: attachment.position ?? 1
        )
        if inflated != nil {
            stored.encoding = attachment.encoding
            stored.encodedLength = storedLength
        }
        return .ready(stored, position: attachment.position)
    }

    /// Saves a document. `current`: what is stored under its ID, if that was read already.
    ///
    /// - Returns: its revision.
    /// - Throws: ``CouchDBError``; `EditRefusal`; `InsertRefusal`.
    static func save(
        _ document: PreparedDocument,
        isNewEdit: Bool,
        in handle: CollectionHandle,
        _ transaction: StoreWriteTransaction,
        over current: CurrentDocument? = nil
    ) throws -> RevisionID {
        guard !isNewEdit else {
            try check(document)
            // Replicators carry it along; a client that writes it expects what does not happen.
            if document.hasExpiration { throw Self.reserved("_exp") }
            let record = try (current ?? CurrentDocument(document.id, in: handle, transaction)).record()
            return try saveEdit(document, over: record, in: handle, transaction)
        }
        guard let result = try saveReplicated([document], in: handle, transaction).first else {
            throw CouchDBError.missing
        }
        return try result.get()
    }

    /// Saves revisions with their histories. Reads and writes a document once, however many of its revisions there are.
    ///
    /// - Returns: for each its revision, or why it was not stored: ``CouchDBError``, `InsertRefusal`, or `corruptRevisionData` for a damaged
    ///   document.
    static func saveReplicated(
        _ documents: [PreparedDocument],
        in handle: CollectionHandle,
        _ transaction: StoreWriteTransaction
    ) throws -> [Result<RevisionID, any Error>] {
        var places: DocumentMap<[Int]> = [:]
        var order: [ExactText] = []
        for (index, document) in documents.enumerated() {
            let id = ExactText(document.id)
            if places[id, default: []].isEmpty { order.append(id) }
            places[id, default: []].append(index)
        }
        var results = [Result<RevisionID, any Error>](
            repeating: .failure(CouchDBError.missing),
            count: documents.count
        )
        for id in order {
            let indices = places[id] ?? []
            do {
                let revisions = indices.map { documents[$0] }
                let saved = try saveBranches(revisions, of: id.text, in: handle, transaction)
                for (index, result) in zip(indices, saved) { results[index] = result }
            } catch let error as LoveseatError where error.code == .corruptRevisionData {
                for index in indices { results[index] = .failure(error) }
            }
        }
        return results
    }

    private static func saveBranches(
        _ documents: [PreparedDocument],
        of id: String,
        in handle: CollectionHandle,
        _ transaction: StoreWriteTransaction
    ) throws -> [Result<RevisionID, any Error>] {
        // A stub may stand for an attachment that comes with another revision of the same batch.
        if documents.count > 1, documents.contains(where: \.hasStubs) {
            return try documents.flatMap { try saveBranches([$0], of: id, in: handle, transaction) }
        }
        let record =
            documents.contains(where: \.hasStubs) ? try transaction.record(id, in: handle) : nil
        // Ancestors that the row does not hold have no content.
        let known = try record.map { try DocumentBranches(of: $0) }
        var branches: [ReceivedBranch] = []
        let revisions = documents.map { document -> Result<RevisionID, any Error> in
            Result {
                try check(document)
                guard let revision = document.history.first else { throw CouchDBError.missingRevision }
                let body = try body(
                    of: document,
                    generation: Int(revision.generation),
                    ancestors: document.history.compactMap { known?.revision($0)?.body },
                    isNewEdit: false,
                    transaction
                )
                try checkBlobs(of: body, document, transaction)
                branches.append(
                    ReceivedBranch(
                        history: document.history,
                        body: body,
                        isDeleted: document.isDeleted
                    )
                )
                return revision
            }
        }
        var inserted = try transaction.insertBranches(branches, of: id, in: handle)[...]
        return revisions.map { revision in
            guard case .success = revision else { return revision }
            guard let outcome = inserted.popFirst() else {
                impossible("a revision of \(id) that was to be stored has no result")
                return .failure(CouchDBError.unknownResult)
            }
            return outcome.flatMap { _ in revision }.mapError { error in
                guard let other = error as? OtherContent else { return error }
                return CouchDBError.forbidden(other.reason)
            }
        }
    }

    /// The refusal of one document, whatever becomes of the others of its batch.
    private static func reserved(_ name: String) -> CouchDBError {
        CouchDBError(400, "doc_validation", "Bad special document member: \(name)")
    }

    private static func check(_ document: PreparedDocument) throws(CouchDBError) {
        // The document that it stands for would be lost.
        if document.isRemoved { throw reserved("_removed") }
        if let name = document.missingBlob { throw CouchDBError.missingStub(name, in: document.id) }
    }

    /// A document whose blob is not here could be served to nobody.
    private static func checkBlobs(
        of body: JSONText,
        _ document: PreparedDocument,
        _ transaction: StoreWriteTransaction
    ) throws(CouchDBError) {
        if document.isDeleted { return }
        for blob in BlobReference.all(in: body) where !transaction.hasBlob(blob.digest) {
            throw CouchDBError(
                403,
                "forbidden",
                "document \(document.id) refers to blob \(blob.digest), which is not here: send its content as an attachment"
            )
        }
    }

    private static func saveEdit(
        _ document: PreparedDocument,
        over record: DocumentRecord?,
        in handle: CollectionHandle,
        _ transaction: StoreWriteTransaction
    ) throws -> RevisionID {
        let branches = try record.map { try DocumentBranches(of: $0) }
        var parent = document.history.first
        // CouchDB lets a new document begin with any parent.
        if record == nil, parent != nil {
            if document.isDeleted { throw StoreWriteTransaction.EditRefusal.conflict }
            parent = nil
        }
        let base = parent ?? record?.revision
        let body = try body(
            of: document,
            generation: Int(base?.generation ?? 0) + 1,
            ancestors: base.flatMap { branches?.revision($0)?.body }.map { [$0] } ?? [],
            isNewEdit: true,
            transaction
        )
        try checkBlobs(of: body, document, transaction)
        return try transaction.insertEdit(
            over: parent,
            of: document.id,
            replacing: record,
            in: handle,
            body: body,
            isDeleted: document.isDeleted
        )
    }

    /// The body to store, with its attachments. `isNewEdit`: content that comes with the document is new, whatever position it names.
    private static func body(
        of document: PreparedDocument,
        generation: Int,
        ancestors: [JSONText],
        isNewEdit: Bool,
        _ transaction: StoreWriteTransaction
    ) throws -> JSONText {
        guard !document.attachments.isEmpty else { return document.body }
        var table = JSONObject()
        var known: [[StoredAttachment]]?
        for attachment in document.attachments {
            switch attachment {
            case .ready(var stored, let position):
                let told = isNewEdit ? nil : position
                stored.position = told.flatMap { (1...generation).contains($0) ? $0 : nil } ?? generation
                table[stored.name] = stored.stored
            case .stub(let stub):
                let kept = known ?? ancestors.map { Self.attachments(of: $0) }
                known = kept
                guard var found = try find(stub, in: kept, transaction) else {
                    guard repeatsCompressed(stub, in: document.body, transaction) else {
                        throw CouchDBError.missingStub(stub.name, in: document.id)
                    }
                    continue
                }
                found.name = stub.name
                if let type = stub.contentType { found.contentType = type }
                table[stub.name] = found.stored
            }
        }
        guard case .object(var object) = JSONElement(document.body).value else { return document.body }
        object["_attachments"] = .object(table)
        return JSONText(canonical: BlobAttachments.absorbed(.object(object)))
    }

    /// The attachments of an ancestor, those in properties, too: a client may have taken such a property away, and kept its attachment.
    private static func attachments(of body: JSONText) -> [StoredAttachment] {
        StoredAttachment.all(in: body) + BlobAttachments.all(in: body, generation: 1)
    }

    /// Whether a stub may mean a blob of the body, although it has another MD5: a CouchDB that compressed the content names it by what it
    /// stores.
    private static func repeatsCompressed(
        _ stub: IncomingAttachment,
        in body: JSONText,
        _ transaction: StoreWriteTransaction
    ) -> Bool {
        guard stub.digest.flatMap({ MD5Digest($0) }) != nil else { return false }
        return BlobAttachments.blob(stub.name, in: body).map { transaction.hasBlob($0.digest) } ?? false
    }

    /// The attachment that a stub means: by its name, or else by its digest.
    private static func find(
        _ stub: IncomingAttachment,
        in ancestors: [[StoredAttachment]],
        _ transaction: StoreWriteTransaction
    ) throws -> StoredAttachment? {
        for attachments in ancestors {
            if let found = attachments.first(where: { $0.name.isExactly(stub.name) }) { return found }
        }
        guard let digest = stub.digest else { return nil }
        let md5 = MD5Digest(digest)
        for attachments in ancestors {
            for attachment in attachments {
                if attachment.digest.text.isExactly(digest) { return attachment }
                if let md5, try transaction.knownMD5(of: attachment.digest) == md5 { return attachment }
            }
        }
        return nil
    }
}
