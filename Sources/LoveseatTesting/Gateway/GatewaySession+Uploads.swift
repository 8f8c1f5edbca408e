import LoveseatAssertions
import LoveseatBLIP
import LoveseatModel
import LoveseatStorage

extension GatewaySession {
    /// A revision that came and waits for its attachments.
    struct Upload {
        let request: Message
        let number: UInt64
        let keyspace: String
        var write: GatewayDatabase.Write
        var waiting: Int
    }

    /// The texts that Go reads as a Boolean.
    private static let booleans: Set<String> = [
        "1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False",
    ]
    private static let reserved: Set<String> = ["_id", "_rev", "_deleted", "_revisions", "_sync"]

    func receiveRevision(_ message: Message, _ number: UInt64, _ keyspace: String, _ index: Int)
        throws(ReplyError)
    {
        let properties = message.properties
        guard let id = properties["id"], let revision = properties["rev"], !id.isEmpty, !revision.isEmpty
        else { throw ReplyError("HTTP", 400, "Missing docID or revID") }
        if properties["deltaSrc"] != nil, !database.options.takesDeltas {
            throw ReplyError("HTTP", 400, "Deltas are disabled for this peer")
        }
        if let text = properties["noconflicts"], !Self.booleans.contains(text) {
            throw ReplyError("HTTP", 400, "Invalid value for noconflicts: \(text)")
        }
        guard id.utf8.count <= 250, !id.hasPrefix("_") else {
            throw ReplyError("HTTP", 400, "Invalid doc ID")
        }
        let state = try pushedState(properties)
        let document = database.keyspaces[keyspace]?.documents[id]
        var body = try content(of: message, over: document)
        let attachments = body.removeValue(forKey: "_attachments")?.object ?? [:]
        body["_exp"] = nil
        let deleted = properties["deleted"]
        var write = GatewayDatabase.Write(
            id: id,
            revision: revision,
            history: (properties["history"] ?? "").split(separator: ",").map(String.init),
            isDeleted: deleted != nil && deleted != "0" && deleted != "false",
            body: body
        )
        write.state = state
        if let state {
            write.history = state.revisions.dropFirst(write.isVersion ? 0 : 1).map(\.text)
            if write.isVersion, try !database.isNews(state, over: document) {
                return reply(Message(), to: message, number)
            }
            write.place(over: document)
        }
        if document?.revisions[revision] != nil { return reply(Message(), to: message, number) }
        let needs = Self.sort(attachments, into: &write, over: document)
        guard !needs.isEmpty else {
            try database.save(write, in: keyspace, by: user)
            return reply(Message(), to: message, number)
        }
        uploads[number] = Upload(
            request: message,
            number: number,
            keyspace: keyspace,
            write: write,
            waiting: needs.count
        )
        for need in needs { ask(need, upload: number, id: id, collection: index, document) }
    }

    /// The content of a pushed revision.
    private func content(of message: Message, over document: GatewayDocument?) throws(ReplyError)
        -> JSONObject
    {
        var content = message.body.isEmpty ? [:] : Self.parse(message.body)
        if let base = message.properties["deltaSrc"], let delta = content {
            content = try self.content(delta, over: base, of: document)
        }
        guard let body = content?.object else { throw ReplyError("HTTP", 500, "Invalid JSON body") }
        if let name = body.keys.first(where: Self.reserved.contains) {
            let reason = "top-level property '\(name)' is a reserved internal property"
            throw ReplyError("HTTP", 404, reason)
        }
        if body["_removed"] != nil {
            throw ReplyError("HTTP", 404, "Document revision is not accessible")
        }
        return body
    }

    /// Takes over what the document has under the same name; returns what has to be asked for (gateway.md 43).
    private static func sort(
        _ attachments: JSONObject,
        into write: inout GatewayDatabase.Write,
        over document: GatewayDocument?
    ) -> [JSONObject] {
        let generation = Int(RevisionID(write.revision)?.generation ?? 1)
        var needs: [JSONObject] = []
        for (name, value) in attachments.sorted(by: { $0.key < $1.key }) {
            guard var entry = value.object, let digest = entry["digest"]?.string else { continue }
            if let old = document?.leaf?.attachments[name], old["digest"]?.string == digest {
                write.attachments[name] = old
                continue
            }
            entry["revpos"] = JSONValue(generation)
            entry["stub"] = true
            write.attachments[name] = entry
            if !needs.contains(where: { $0["digest"]?.string == digest }) { needs.append(entry) }
        }
        return needs
    }

    private func ask(
        _ entry: JSONObject,
        upload: UInt64,
        id: String,
        collection: Int,
        _ document: GatewayDocument?
    ) {
        let digest = entry["digest"]?.string ?? ""
        let tag = nextTag()
        var properties: MessageProperties = ["digest": digest]
        if collection >= 0 { properties["collection"] = String(collection) }
        if document?.attachments[digest] != nil {
            let nonce = makeNonce(digest) ?? generator.bytes(20)
            properties["Profile"] = "proveAttachment"
            awaited[tag] = .proof(digest: digest, nonce: nonce, upload: upload)
            return send(Message(properties, body: nonce), tag: tag)
        }
        properties["Profile"] = "getAttachment"
        if !isMobile2 { properties["docID"] = id }
        if entry["content_type"]?.string?.hasPrefix("text/") == true { properties["compress"] = "true" }
        awaited[tag] = .attachment(digest: digest, upload: upload)
        send(Message(properties), tag: tag)
    }

    func receivedAttachment(_ digest: String, _ number: UInt64, _ result: Result<Message, ReplyError>) {
        // The upload may have ended with the failure of another attachment.
        guard uploads[number] != nil else { return }
        switch result {
        case .failure(let error):
            let reason = "Internal error: error \(error.code) from getAttachment: \(error.text)"
            end(number, ReplyError("HTTP", 500, reason))
        case .success(let message):
            guard "sha1-" + Base64.encode(Hashing.sha1(message.body)) == digest else {
                let reason = "Incorrect data sent for attachment with digest: \(digest)"
                return end(number, ReplyError("HTTP", 400, reason))
            }
            uploads[number]?.write.contents[digest] = message.body
            finish(number)
        }
    }

    func receivedProof(
        _ digest: String,
        _ nonce: [UInt8],
        _ number: UInt64,
        _ result: Result<Message, ReplyError>
    ) {
        // The upload may have ended with the failure of another attachment.
        guard let upload = uploads[number] else { return }
        let document = database.keyspaces[upload.keyspace]?.documents[upload.write.id]
        let bytes = document?.attachments[digest] ?? []
        let proof = "sha1-" + Base64.encode(Hashing.sha1([UInt8(nonce.count)] + nonce + bytes))
        guard case .success(let message) = result, message.body == Array(proof.utf8) else {
            return end(number, ReplyError("HTTP", 403, "incorrect proof of attachment"))
        }
        finish(number)
    }

    private func finish(_ number: UInt64) {
        uploads[number]?.waiting -= 1
        // The revision waits for its other attachments.
        guard let upload = uploads[number], upload.waiting == 0 else { return }
        do {
            try database.save(upload.write, in: upload.keyspace, by: user)
            end(number, nil)
        } catch { end(number, error) }
    }

    private func end(_ number: UInt64, _ error: ReplyError?) {
        guard let upload = uploads.removeValue(forKey: number) else {
            return impossible("upload \(number) was not begun, or ends twice")
        }
        if let error { fail(error, number) } else { reply(Message(), to: upload.request, number) }
    }

    // MARK: Serving (gateway.md 37, 44)

    func serve(_ message: Message, _ number: UInt64, _ keyspace: String) throws(ReplyError) {
        guard let digest = message.properties["digest"] else {
            throw ReplyError("HTTP", 400, "Missing 'digest'")
        }
        let id = message.properties["docID"]
        guard id != nil || isMobile2 else { throw ReplyError("HTTP", 400, "Missing 'docID'") }
        let found = id ?? servable.first { $0.value[digest] != nil }?.key
        guard let found, servable[found]?[digest] != nil,
            let bytes = database.keyspaces[keyspace]?.documents[found]?.attachments[digest]
        else { throw ReplyError("HTTP", 403, "Attachment's doc not being synced") }
        guard message.profile == "getAttachment" else {
            guard (1...255).contains(message.body.count) else {
                throw ReplyError("HTTP", 400, "missing nonce")
            }
            let proof = Hashing.sha1([UInt8(message.body.count)] + message.body + bytes)
            return reply(Message(body: Array("sha1-\(Base64.encode(proof))".utf8)), to: message, number)
        }
        let isCompressed = message.properties["compress"] == "true"
        reply(Message(body: bytes, isCompressed: isCompressed), to: message, number)
    }

    func endServing(_ id: String, _ digests: [String]) {
        for digest in digests {
            guard let count = servable[id]?[digest] else { continue }
            servable[id]?[digest] = count > 1 ? count - 1 : nil
        }
    }
}
