import LoveseatModel

extension LiteReplay {
    /// Compares the documents of a peer with those of a recorded state.
    mutating func compare(_ state: JSONValue?, _ peer: String) {
        // States of peers that were not used yet have nothing to compare with.
        guard let database = databases[peer] else { return }
        var seen: Set<String> = []
        for item in state?.array ?? [] {
            let id = item["id"]?.string ?? ""
            let collection = item["collection"]?.string ?? "_default"
            seen.insert("\(collection)/\(id)")
            guard let document = database.documents(in: collection)[id] else {
                note("\(peer) has no \(id)")
                continue
            }
            let (own, recorded) = (Self.summary(document), Self.summary(item))
            if own != recorded {
                note("\(peer) has \(id) as \(JSONValue.object(own)), recorded \(JSONValue.object(recorded))")
            }
        }
        for (path, collection) in database.collections {
            for id in collection.documents.keys.sorted() where !seen.contains("\(path)/\(id)") {
                note("\(peer) has \(id)")
            }
        }
    }

    /// A document in the form that is compared.
    private static func summary(_ document: LiteDocument) -> JSONObject {
        let current = document.current
        var summary: JSONObject = [
            "revision": .string(current.wholeText),
            "deleted": .bool(current.isDeleted),
            "sequence": JSONValue(document.sequence),
            "conflicted": .bool(document.isConflicted),
            "remote": .array(
                document.remotes.sorted { $0.key < $1.key }.map { .string($0.value.revision.wholeText) }
            ),
        ]
        if !current.isDeleted { summary["body"] = .object(current.body ?? [:]) }
        if current.legacyID == nil { summary["legacy"] = document.lastLegacy.map { .string($0.text) } }
        return summary
    }

    private static func summary(_ item: JSONValue) -> JSONObject {
        let revision = item["vector"]?.string ?? item["revision"]?.string ?? ""
        let remotes = (item["remote"]?.array ?? []).map { mark in
            // Legacy revisions behind a remote's vector are shown for some records only.
            let text = (mark["vector"] ?? mark["revision"] ?? mark).string ?? ""
            guard let end = text.firstIndex(of: ";"), !text[end...].contains("@") else {
                return JSONValue(text)
            }
            return JSONValue(text[end...].contains("-") ? String(text[..<end]) : text)
        }
        var summary: JSONObject = [
            "revision": .string(revision),
            "deleted": item["deleted"] ?? false,
            "sequence": item["sequence"] ?? 0,
            "conflicted": item["conflicted"] ?? false,
            "remote": .array(remotes),
        ]
        if item["deleted"]?.bool != true { summary["body"] = item["body"] ?? .object([:]) }
        summary["legacy"] = item["legacy"]?[0] ?? item["legacy"]
        return summary
    }
}
