import LoveseatAssertions
import LoveseatBLIP
import LoveseatModel
import LoveseatStorage

extension LiteSession {
    func receiveProposals(_ message: Message, _ number: UInt64, _ index: Int) throws(ReplyError) {
        guard let entries = Self.parse(message.body)?.array else {
            throw ReplyError("BLIP", 400, "Invalid JSON body")
        }
        // An empty list says that there is nothing more.
        if message.noReply { return }
        let includesRevision = message.properties.bool("conflictIncludesRev")
        var items: [JSONValue] = []
        for entry in entries {
            guard let id = entry[0]?.string, let revision = entry[1]?.string else {
                throw ReplyError("LiteCore", 26, "Invalid proposal")
            }
            let verdict = database.verdict(
                onProposed: revision,
                parent: entry[2]?.string ?? "",
                id,
                in: channels[index].collection
            )
            switch verdict {
            case .accepted: items.append(0)
            case .alreadyPresent: items.append(304)
            case .conflict(let current):
                items.append(includesRevision ? ["status": 409, "rev": .string(current)] : 409)
            }
        }
        replyWithWishes(items, to: message, number, index)
    }

    func receiveRevision(_ message: Message, _ number: UInt64, _ index: Int) throws(ReplyError) {
        let properties = message.properties
        guard let id = properties["id"], !id.isEmpty else {
            throw ReplyError("WebSocket", 400, "received invalid docID ''")
        }
        guard let text = properties["rev"], (try? RevisionName(text)) != nil else {
            throw ReplyError("WebSocket", 400, "received invalid version ID")
        }
        let state: StateHistory
        do { state = try StateHistory(rev: text, history: properties["history"]) } catch {
            throw ReplyError("LiteCore", 4, "Invalid version vector")
        }
        let received = message.body.isEmpty ? [UInt8]("{}".utf8) : message.body
        guard let value = Self.parse(received) else { throw ReplyError("LiteCore", 26, "Invalid JSON body") }
        let base = properties["deltaSrc"]
        let body =
            try base.map { base throws(ReplyError) in
                try database.apply(value, to: base, id, in: channels[index].collection)
            } ?? value
        // Reserved properties are not stored.
        let kept = (body.object ?? [:]).filter { !$0.key.hasPrefix("_") }
        let deleted = properties["deleted"]
        let arrival = LiteDatabase.Arrival(
            id: id,
            collection: channels[index].collection,
            state: state,
            isDeleted: deleted != nil && deleted != "0" && deleted != "false",
            body: JSONObject(kept) { _, last in last },
            remote: remote,
            allowsConflict: plan != nil && !properties.bool("noconflicts")
        )
        let content = base == nil ? JSONText(trusted: received) : JSONText(canonical: body)
        let missing = BlobReference.all(in: content).filter { database.blobs[$0.digest.text] == nil }
        let upload = LiteUpload(
            request: message,
            number: number,
            index: index,
            arrival: arrival,
            missing: missing
        )
        if missing.isEmpty { return finish(upload) }
        uploads[number] = upload
        askForBlob(number)
    }

    private func finish(_ upload: LiteUpload) {
        let insertion = database.insert(upload.arrival)
        switch insertion {
        case .inserted, .alreadyPresent, .conflict:
            var answer = Message()
            if insertion == .alreadyPresent { answer.properties["noop"] = "true" }
            reply(answer, to: upload.request, upload.number)
        case .refused: refuse(upload, ReplyError("LiteCore", 8, "conflict"))
        case .badTime:
            // Couchbase Lite shows its own versions as it stores them.
            let text = upload.arrival.state.vector.text.replacing("@\(database.source)", with: "@*")
            refuse(upload, ReplyError("LiteCore", 4, "Invalid timestamp in version vector \(text)"))
        }
        pulled(upload.arrival.id, upload.request.properties["sequence"], insertion, upload.index)
    }

    /// A revision cannot be stored. If it was a difference that cannot be applied, it comes again in full.
    func refused(_ message: Message, _ error: ReplyError) {
        // The collection may be the error.
        guard let index = message.properties.int("collection"), channels.indices.contains(index) else {
            return
        }
        if plan == nil || error.code == 422 { return }
        report(message.properties["id"] ?? "", isPush: false, error)
        channels[index].pull.finish(message.properties["sequence"])
        cameIn(index)
    }

    private func refuse(_ upload: LiteUpload, _ error: ReplyError) {
        report(upload.arrival.id, isPush: false, error)
        fail(error, upload.number, to: upload.request)
    }

    // MARK: Blobs (replication.md §11)

    private func askForBlob(_ number: UInt64) {
        guard let upload = uploads[number], let blob = upload.missing.first else {
            return impossible("no blob is missing")
        }
        var properties: MessageProperties = [
            "Profile": "getAttachment", "collection": String(upload.index),
            "digest": blob.digest.text, "docID": upload.arrival.id,
        ]
        if blob.isCompressible { properties["compress"] = "true" }
        send(Message(properties), .attachment(blob.digest.text, upload: number))
    }

    func receivedAttachment(_ digest: String, _ number: UInt64, _ result: Result<Message, ReplyError>) {
        guard var upload = uploads.removeValue(forKey: number) else {
            return impossible("a blob for a revision that does not wait")
        }
        switch result {
        case .failure(let error):
            // The next run asks for the revision again.
            refuse(upload, error)
            return cameIn(upload.index)
        case .success(let message):
            guard BlobDigest(sha1: Hashing.sha1(message.body)).text == digest else {
                refuse(upload, ReplyError("LiteCore", 15, "blob does not match its digest"))
                return cameIn(upload.index)
            }
            database.blobs[digest] = message.body
        }
        upload.missing.removeAll { database.blobs[$0.digest.text] != nil }
        if upload.missing.isEmpty { return finish(upload) }
        uploads[number] = upload
        askForBlob(number)
    }
}

extension LiteDatabase {
    /// Answers `getAttachment` and `proveAttachment`.
    func answerAttachment(_ message: Message) throws(ReplyError) -> Message {
        guard let bytes = message.properties["digest"].flatMap({ blobs[$0] }) else {
            throw ReplyError("LiteCore", 7, "no such blob")
        }
        guard message.profile == "proveAttachment" else {
            return Message(body: bytes, isCompressed: message.properties.bool("compress"))
        }
        guard (1...255).contains(message.body.count) else { throw ReplyError("BLIP", 400, "missing nonce") }
        let proof = Hashing.sha1([UInt8(message.body.count)] + message.body + bytes)
        return Message(body: Array("sha1-\(Base64.encode(proof))".utf8))
    }

    /// Returns the content that a difference makes.
    fileprivate func apply(_ delta: JSONValue, to base: String, _ id: String, in collection: String)
        throws(ReplyError) -> JSONValue
    {
        let document = documents(in: collection)[id]
        let known = document.map { [$0.current] + $0.remotes.values.map(\.revision) } ?? []
        guard let body = known.first(where: { $0.isNamed(base) && $0.body != nil })?.body else {
            throw ReplyError("HTTP", 422, "delta base is unknown")
        }
        do { return try JSONDelta.apply(delta, to: .object(body)) } catch {
            throw ReplyError("HTTP", 422, "corrupt delta")
        }
    }
}
