import LoveseatCouchDBReplication
import LoveseatModel

extension ScriptedCouchDatabase.Incoming {
    /// Reads a document with its history. `parts`: the content of the attachments that follow, in the order in which it names them.
    init(_ element: JSONElement, id: String?, parts: [[UInt8]]) throws(ScriptedCouchDatabase.Refusal) {
        guard let id = id ?? element["_id"]?.string else {
            throw ScriptedCouchDatabase.Refusal(status: 400, error: "bad_request", reason: "no ID")
        }
        self.id = id
        do throws(CouchDBError) {
            if let revisions = element["_revisions"] {
                history = try RevisionText.history(revisions)
            } else {
                history = [try RevisionText.parse(element["_rev"]?.string ?? "")]
            }
        } catch {
            throw ScriptedCouchDatabase.Refusal(status: 400, error: "bad_request", reason: error.reason)
        }
        isDeleted = element["_deleted"]?.bool ?? false
        var body: JSONValue = [:]
        for (name, value) in element.members where !name.hasPrefix("_") { body[name] = value.value }
        self.body = body
        var attachments: [String: ScriptedCouchDatabase.Attachment] = [:]
        var stubs: [String: Int?] = [:]
        var next = 0
        for (name, entry) in element["_attachments"]?.members.map({ $0 }) ?? [] {
            let generation = entry["revpos"]?.int
            let content: [UInt8]
            if entry["stub"]?.bool == true {
                stubs.updateValue(generation, forKey: name)
                continue
            } else if entry["follows"]?.bool == true, next < parts.count {
                content = parts[next]
                next += 1
            } else if let data = entry["data"]?.string.flatMap({ Base64.decode($0) }) {
                content = data
            } else {
                throw ScriptedCouchDatabase.Refusal(
                    status: 400,
                    error: "bad_request",
                    reason: "the attachment \(name) has no content"
                )
            }
            attachments[name] = ScriptedCouchDatabase.Attachment(
                type: entry["content_type"]?.string ?? "application/octet-stream",
                content: content,
                generation: generation ?? 0
            )
        }
        (self.attachments, self.stubs) = (attachments, stubs)
    }
}

/// The parts of a body.
enum ScriptedParts {
    /// Divides a body at its boundary; without the parts' headers.
    static func divide(_ body: [UInt8], boundary: String) -> [[UInt8]] {
        let mark = Array("\r\n--\(boundary)".utf8)
        let bytes = Array("\r\n".utf8) + body
        var places: [Int] = []
        var index = 0
        while index + mark.count <= bytes.count {
            if bytes[index] == mark[0], bytes[index..<index + mark.count].elementsEqual(mark) {
                places.append(index)
                index += mark.count
            } else {
                index += 1
            }
        }
        let end = Array("\r\n\r\n".utf8)
        return zip(places, places.dropFirst()).compactMap { start, stop in
            let part = bytes[(start + mark.count)..<stop]
            guard
                let head = part.indices.first(where: {
                    $0 + end.count <= part.endIndex && part[$0..<$0 + end.count].elementsEqual(end)
                })
            else { return nil }
            return Array(part[(head + end.count)...])
        }
    }
}
