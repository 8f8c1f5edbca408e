import LoveseatModel

/// An edit of a recorded story.
struct LiteOperation {
    enum Edit {
        case put(JSONObject)
        case delete
        case purge
        /// The story has something that is not known here.
        case unknown
    }

    let id: String
    let collection: String
    let edit: Edit

    /// Reads the operations of a step (README of the recordings). `state`: what the peer has after them. `body`: what it has before.
    static func parse(
        _ texts: [String],
        _ state: [JSONValue],
        body: (_ id: String, _ collection: String) -> JSONObject?
    )
        -> [LiteOperation]
    {
        var rest = texts[...]
        var collection = "_default"
        var operations: [LiteOperation] = []
        var bodies: [String: JSONObject] = [:]
        while let operation = rest.popFirst() {
            let id = rest.popFirst() ?? ""
            if operation == "--coll" {
                collection = id
                continue
            }
            let key = "\(collection)/\(id)"
            var content = bodies[key] ?? body(id, collection) ?? [:]
            var edit: Edit?
            switch operation {
            case "--purge": edit = .purge
            case "--delete": edit = .delete
            case "--put": content = LiteReplay.object(rest.popFirst())
            case "--edit":
                for (name, value) in LiteReplay.object(rest.popFirst()) {
                    content.removeValue(forKey: name)
                    if !value.isNull { content[name] = value }
                }
            case "--attach":
                let property = rest.popFirst() ?? ""
                rest = rest.dropFirst(2)
                content[property] = find(id, collection, in: state)?["body"]?[property]
            default: edit = .unknown
            }
            bodies[key] = edit == nil ? content : [:]
            operations.append(LiteOperation(id: id, collection: collection, edit: edit ?? .put(content)))
        }
        return operations
    }

    /// The version that the edit made.
    func version(in state: [JSONValue]) -> Version? {
        Self.find(id, collection, in: state)?["version"]?.string.flatMap { try? Version($0) }
    }

    static func find(_ id: String, _ collection: String, in state: [JSONValue]) -> JSONValue? {
        state.first { $0["id"]?.string == id && $0["collection"]?.string ?? "_default" == collection }
    }
}
