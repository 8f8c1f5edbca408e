import LoveseatAssertions
import LoveseatBLIP
import LoveseatModel

extension GatewaySession {
    func answer(_ message: Message, _ number: UInt64) throws(ReplyError) {
        if message.profile == "getCollections" { return try bind(message, number) }
        guard Self.profiles.contains(message.profile) else {
            throw ReplyError("BLIP", 404, "unknown profile")
        }
        let (keyspace, index) = try keyspace(of: message)
        switch message.profile {
        case "getCheckpoint":
            guard let stored = database.checkpoint(message.properties["client"] ?? "", in: keyspace) else {
                throw ReplyError("HTTP", 404, "missing")
            }
            let properties: MessageProperties = [
                "rev": "0-\(stored.revision)", "Content-Type": "application/json",
            ]
            let body = Self.json(.object(stored.body))
            reply(Message(properties, body: body, isCompressed: true), to: message, number)
        case "setCheckpoint":
            guard let body = Self.parse(message.body)?.object else {
                throw ReplyError("HTTP", 400, "Invalid JSON body")
            }
            let revision = try database.saveCheckpoint(
                body,
                client: message.properties["client"] ?? "",
                revision: message.properties["rev"] ?? "",
                in: keyspace
            )
            reply(Message(["rev": revision]), to: message, number)
        case "subChanges": try subscribe(message, number, keyspace, index)
        case "unsubChanges":
            if feeds.removeValue(forKey: index) != nil { closedFeeds.insert(index) }
            reply(Message(), to: message, number)
        case "changes": throw ReplyError("HTTP", 409, "Use 'proposeChanges' instead")
        case "proposeChanges": try evaluate(message, number, keyspace)
        case "rev": try receiveRevision(message, number, keyspace, index)
        case "getAttachment", "proveAttachment": try serve(message, number, keyspace)
        default: impossible("profile \(message.profile) has no handler")
        }
    }

    private static let profiles: Set<String> = [
        "getCheckpoint", "setCheckpoint", "subChanges", "unsubChanges", "changes", "proposeChanges", "rev",
        "getAttachment", "proveAttachment",
    ]

    static func parse(_ bytes: [UInt8]) -> JSONValue? { (try? JSONElement(parsing: bytes))?.value }

    // MARK: Collections (gateway.md 20, 45, 46)

    private func bind(_ message: Message, _ number: UInt64) throws(ReplyError) {
        guard let body = Self.parse(message.body) else { throw ReplyError("HTTP", 500, "Invalid JSON body") }
        let paths = body["collections"]?.array?.compactMap(\.string) ?? []
        let clients = body["checkpoint_ids"]?.array?.compactMap(\.string) ?? []
        guard paths.count == clients.count else {
            throw ReplyError("HTTP", 400, "collections and checkpoint_ids must be of equal length")
        }
        let keyspaces = paths.map { GatewayDatabase.keyspace($0) }
        bound = keyspaces.map { database.keyspaces[$0] == nil ? nil : $0 }
        let answers: [JSONValue] = zip(keyspaces, clients).map { keyspace, client in
            guard database.keyspaces[keyspace] != nil else { return .null }
            guard let stored = database.checkpoint(client, in: keyspace) else { return [:] }
            var body = stored.body
            body["_rev"] = .string("0-\(stored.revision)")
            return .object(body)
        }
        let properties: MessageProperties = ["Content-Type": "application/json"]
        let answer = Message(properties, body: Self.json(.array(answers)), isCompressed: true)
        reply(answer, to: message, number)
    }

    private func keyspace(of message: Message) throws(ReplyError) -> (path: String, index: Int) {
        guard let text = message.properties["collection"] else {
            guard bound == nil else {
                throw ReplyError("HTTP", 400, "Collection property not specified after getCollections")
            }
            guard database.keyspaces[GatewayDatabase.defaultKeyspace] != nil else {
                let reason = "Collection property not specified and default collection is not configured for"
                throw ReplyError("HTTP", 400, "\(reason) this database")
            }
            return (GatewayDatabase.defaultKeyspace, -1)
        }
        guard let index = Int(text) else {
            throw ReplyError("HTTP", 400, "collection property needs to be an int, was \(text)")
        }
        guard let bound else {
            throw ReplyError("HTTP", 400, "Passing collection requires calling getCollections first")
        }
        guard bound.indices.contains(index) else {
            let reason = "Collection index \(index) is outside range indexes set by GetCollections"
            throw ReplyError("HTTP", 400, reason)
        }
        guard let path = bound[index] else {
            let reason = "Collection index \(index) was not a valid collection set by GetCollections"
            throw ReplyError("HTTP", 400, reason)
        }
        return (path, index)
    }

    // MARK: Proposals (gateway.md 34, 35, 55, 62)

    private func evaluate(_ message: Message, _ number: UInt64, _ keyspace: String) throws(ReplyError) {
        guard let proposals = Self.parse(message.body), proposals.isNull || proposals.array != nil else {
            throw ReplyError("HTTP", 400, "Invalid JSON body")
        }
        let namesCurrent = message.properties["conflictIncludesRev"] == "true"
        var answers = (proposals.array ?? []).map { proposal -> JSONValue in
            let id = proposal[0]?.string ?? ""
            let parent = proposal[2]?.string ?? ""
            let document = database.keyspaces[keyspace]?.documents[id]
            if speaksVersions {
                return versionedVerdict(on: proposal, over: document, namesCurrent: namesCurrent)
            }
            guard let document else { return 0 }
            if document.current == proposal[1]?.string { return 304 }
            if document.current == parent || (parent.isEmpty && document.isDeleted) { return 0 }
            return namesCurrent ? ["status": 409, "rev": .string(document.current)] : 409
        }
        while answers.last == 0 { answers.removeLast() }
        let body = Self.json(.array(answers))
        let properties: MessageProperties = database.options.takesDeltas ? ["deltas": "true"] : [:]
        reply(Message(properties, body: body, isCompressed: true), to: message, number)
    }
}
