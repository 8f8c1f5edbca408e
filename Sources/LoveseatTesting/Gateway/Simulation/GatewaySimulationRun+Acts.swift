import LoveseatAssertions
import LoveseatBLIP
import LoveseatModel
import LoveseatStorage

/// The acts of people in a history.
extension GatewaySimulationRun {
    func randomID() -> String { "d\(generator.int(0...7))" }

    private func randomBody() -> JSONValue {
        simulation.repeatsContents ? generator.pick(repeatedBodies) : newBody()
    }

    func newBody() -> JSONValue {
        if simulation.speaksVersions { return openBody() }
        var body: JSONValue = ["n": JSONValue(generator.int(0...1_000_000))]
        let names = channels().union(generator.chance(0.15) ? ["s"] : []).sorted()
        body["channels"] = .array(names.map { .string($0) })
        switch generator.int(0...19) {
        case 0: body["forbid"] = true
        case 1: body["owner"] = .string(generator.pick(users))
        case 2: body["need"] = .string(generator.pick(["a", "b", "c", "s"]))
        case 3, 4:
            let granted = channels().sorted().map { JSONValue.string($0) }
            body["grant"] = ["user": .string(generator.pick(users)), "channels": .array(granted)]
        case 5: body["part"] = ["user": .string(generator.pick(users)), "role": "role:staff"]
        case 6: body["text"] = .string(String(repeating: "lorem ipsum ", count: generator.int(1...4_000)))
        default: break
        }
        return body
    }

    /// A blob of few contents, so that the gateway is asked for the same bytes again.
    private func blob(for client: GatewayClient) throws -> JSONValue {
        let content = [UInt8](
            repeating: UInt8(generator.int(0...3)),
            count: generator.pick([0, 10, 5_000, 70_000])
        )
        let writer = try client.peer.store.blobs.writer()
        try writer.write(content)
        let (digest, length) = try writer.finish()
        let type = generator.pick(["text/plain", "image/jpeg"])
        return BlobReference(digest: digest, length: length, contentType: type).json
    }

    func editAtClient() throws {
        let client = generator.pick(clients)
        let id = randomID()
        let isDeletion = generator.chance(0.2)
        trace("client \(client.peer.index) \(isDeletion ? "deletes" : "saves") \(id)")
        var body: JSONValue = isDeletion ? [:] : randomBody()
        if !isDeletion, !simulation.repeatsContents, generator.chance(0.15) {
            body["blob"] = try blob(for: client)
        }
        let collection = client.peer.collections[0]
        let before = client.peer.tree(id, in: 0)
        if isDeletion, before?.current?.isDeleted != false { return }
        let saved = try client.peer.store.write {
            try $0.save(
                id,
                in: collection,
                body: JSONText(canonical: body),
                isDeleted: isDeletion,
                condition: .lastWriteWins
            )
        }
        if saved == nil { return }
        audit.saved(id, by: client.user)
        client.deletedAlready.remove(id)
        if isDeletion { client.deleted.insert(id) } else { client.deleted.remove(id) }
        if let before, let current = before.current {
            let others = before.candidates.map(\.original).filter { $0 != before.original(current.id) }
            client.givenUp[id, default: []].formUnion(others)
        }
        guard let made = client.peer.tree(id, in: 0)?.current else {
            return impossible("client \(client.peer.index) has nothing of \(id), which it has just saved")
        }
        if isDeletion { client.tombstones.insert(made.id) }
        if simulation.speaksVersions { noteEdit(of: id, at: client, over: before) }
    }

    /// An administrator or a user writes over REST, on top of what is there.
    func editOverREST() {
        let id = randomID()
        let user = generator.chance(0.3) ? generator.pick(users) : nil
        let current = twin.databases[Self.database]?.currentRevision(of: id, in: path)
        let replaced = gatewayName(of: id)
        let isDeletion = generator.chance(0.2) && current?.isDeleted == false
        let body = isDeletion ? [:] : randomBody().object ?? [:]
        do throws(ReplyError) {
            let revision = try traffic.edit(id, isDeletion ? nil : body, by: user, in: path)
            trace("rest \(isDeletion ? "deletes" : "saves") \(id) \(revision ?? "")")
            if simulation.speaksVersions { noteWrite(of: id, isDeleted: isDeletion, body, over: replaced) }
        } catch { trace("rest \(id) \(error)") }
    }

    func administer() {
        // In a history with versions, everybody may see everything.
        if simulation.speaksVersions { return editOverREST() }
        let user = generator.pick(users)
        switch generator.int(0...6) {
        case 0...3:
            let isStaff = generator.chance(0.3)
            let names = generator.chance(0.2) ? [] : channels()
            trace("user \(user) \(names.sorted()) \(isStaff)")
            let settings = GatewayDatabase.PrincipalSettings(
                channels: [path: names],
                roles: isStaff ? ["staff"] : []
            )
            twin.databases[Self.database]?.putUser(user, settings)
        case 4:
            let names = generator.chance(0.3) ? [] : channels().union(["s"])
            trace("role \(names.sorted())")
            twin.databases[Self.database]?.putRole("staff", .init(channels: [path: names]))
        default:
            let id = randomID()
            trace("purge \(id)")
            _ = twin.databases[Self.database]?.purge(id, in: path)
        }
    }
}
