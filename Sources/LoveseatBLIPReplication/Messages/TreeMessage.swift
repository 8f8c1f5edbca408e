package import LoveseatBLIP
package import LoveseatModel

/// The tree of a document, as one Loveseat sends it to another if it has more than one line (docs/extensions.md, "Trees").
///
///     {"bodies":{"2-d…":{…}},"closed":["2-e…"],"copies":["4-f…"],"current":"3-a…",
///      "deleted":["3-a…"],"lines":[["3-a…","2-b…","1-c…"],["2-d…","1-c…"]],"vectors":{"3-a…":"18…@V…"}}
///
/// A line names a leaf and its ancestors, newest first, down to the first one that an earlier line names.
package enum TreeMessage {
    /// Of `rev`: how many bytes at the end of the body are the tree. Of its answer: that the body is a tree.
    static let property = "loveseat_tree"

    /// `current`: the revision whose body travels by itself, or not at all.
    package static func body(
        _ knowledge: TreeKnowledge,
        current: RevisionID,
        withCurrent: Bool = false
    ) -> [UInt8] {
        let bodies = TreeBodies(of: knowledge, current: current, withCurrent: withCurrent)
        return body(knowledge, current: current, bodies)
    }

    static func body(_ knowledge: TreeKnowledge, current: RevisionID, _ bodies: TreeBodies) -> [UInt8] {
        var writer = Writer()
        writer.bytes.reserveCapacity(
            100 * knowledge.nodes.count + bodies.brought.reduce(200) { $0 + $1.body.bytes.count + 60 }
        )
        // Each member but the last one is followed by a comma.
        writer.write("{")
        if !knowledge.closed.isEmpty {
            writer.write(#""closed":"#, knowledge.closed.sorted(by: >)) { $0.write($1) }
            writer.write(",")
        }
        if !knowledge.copies.isEmpty {
            writer.write(#""copies":"#, knowledge.copies.sorted(by: >)) { $0.write($1) }
            writer.write(",")
        }
        writer.write(#""current":"#)
        writer.write(current)
        let deleted = knowledge.nodes.lazy.filter { $0.isDeleted }.map { $0.id }.sorted(by: >)
        if !deleted.isEmpty { writer.write(#","deleted":"#, deleted) { $0.write($1) } }
        if !bodies.left.isEmpty { writer.write(#","left":"#, bodies.left) { $0.write($1) } }
        writer.write(#","lines":"#, lines(of: knowledge)) { $0.write("", $1) { $0.write($1) } }
        if !knowledge.vectors.isEmpty {
            writer.write(#","vectors":{"#)
            for (index, entry) in knowledge.vectors.sorted(by: { $0.key > $1.key }).enumerated() {
                if index > 0 { writer.write(",") }
                writer.write(entry.key)
                writer.write(":\"\(entry.value.text)\"")
            }
            writer.write("}")
        }
        if !bodies.brought.isEmpty {
            writer.write(#","bodies":{"#)
            for (index, (id, body)) in bodies.brought.enumerated() {
                if index > 0 { writer.write(",") }
                writer.write(id)
                writer.write(":")
                writer.bytes.append(contentsOf: body.bytes)
            }
            writer.write("}")
        }
        writer.write("}")
        return writer.bytes
    }

    /// Writes JSON of revision IDs, in which nothing has to be escaped.
    private struct Writer {
        var bytes: [UInt8] = []

        mutating func write(_ text: String) { bytes.append(contentsOf: text.utf8) }

        mutating func write(_ id: RevisionID) {
            bytes.append(UInt8(ascii: "\""))
            bytes.append(contentsOf: id.text.utf8)
            bytes.append(UInt8(ascii: "\""))
        }

        /// Writes a text, and an array.
        mutating func write<Item>(_ start: String, _ items: [Item], each: (inout Self, Item) -> Void) {
            write(start)
            bytes.append(UInt8(ascii: "["))
            for (index, item) in items.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                each(&self, item)
            }
            bytes.append(UInt8(ascii: "]"))
        }
    }

    /// A tree with one body only, that of the current revision, which the peer may not get in any other way. If branches are kept, peers of
    /// CouchDB's wire are shown every leaf, so the tree has the bodies of all.
    static func answer(_ knowledge: TreeKnowledge, current: RevisionID) -> [UInt8] {
        let told = knowledge.keepsBranches ? knowledge : knowledge.keepingBody(of: current)
        return body(told, current: current, withCurrent: true)
    }

    private static func lines(of knowledge: TreeKnowledge) -> [[RevisionID]] {
        guard knowledge.nodes.contains(where: { $0.parent != nil }) else {
            return knowledge.nodes.map(\.id).sorted(by: >).map { [$0] }
        }
        let parents = Dictionary(knowledge.nodes.map { ($0.id, $0.parent) }) { first, _ in first }
        let inner = Set(knowledge.nodes.compactMap(\.parent))
        var named: Set<RevisionID> = []
        return knowledge.nodes.map(\.id).filter { !inner.contains($0) }.sorted(by: >).map { leaf in
            var line: [RevisionID] = []
            var next: RevisionID? = leaf
            while let id = next, parents[id] != nil {
                line.append(id)
                guard named.insert(id).inserted else { break }
                next = parents[id] ?? nil
            }
            return line
        }
    }

    /// - Throws: ``ReplyError`` for bytes that are not a tree, or for a larger tree than Loveseats make.
    package static func parse(_ bytes: some Collection<UInt8>) throws(ReplyError) -> ReceivedTree {
        let bytes = Array(bytes)
        guard let json = try? JSONElement(scanning: bytes, limits: .envelope), json.kind == .object else {
            throw invalid("not a JSON object")
        }
        // Few bodies have blobs or reserved names, and all of them are searched at once.
        let isPlain = !bytes.contains("@", "_", "\\")
        let bodies = try bodies(json["bodies"], arePlain: isPlain)
        let deleted = Set(try revisions(json["deleted"], atMost: ReplicationTuning.treeRevisions))
        var knowledge = TreeKnowledge()
        var room = ReplicationTuning.treeRevisions
        guard json["lines"]?.count ?? 0 <= ReplicationTuning.treeLines else {
            throw invalid("too many lines")
        }
        for element in json["lines"]?.itemList ?? [] {
            let line = try revisions(element, atMost: room)
            room -= line.count
            for (index, id) in line.enumerated() {
                let parent = index + 1 < line.count ? line[index + 1] : nil
                guard parent?.generation ?? 0 < id.generation else {
                    throw invalid("a line that does not go down")
                }
                var flags: RevisionTree.Flags = deleted.contains(id) ? .deleted : []
                let body = bodies[id]
                if !isPlain, let body, !BlobReference.all(in: body).isEmpty { flags.insert(.hasBlobs) }
                knowledge.nodes.append(RevisionTree.Node(id: id, parent: parent, flags: flags, body: body))
            }
        }
        knowledge.closed = Set(try revisions(json["closed"], atMost: ReplicationTuning.treeNotes))
        knowledge.copies = Set(try revisions(json["copies"], atMost: ReplicationTuning.treeNotes))
        guard knowledge.copies.allSatisfy({ CopyName($0) != nil }) else {
            throw invalid("a copy that does not say what it is a copy of")
        }
        knowledge.vectors = try vectors(json["vectors"], of: knowledge.nodes)
        guard let current = json["current"]?.string.flatMap({ RevisionID(received: $0) }),
            knowledge.nodes.contains(where: { $0.id == current })
        else { throw invalid("no current revision") }
        let left = try revisions(json["left"], atMost: ReplicationTuning.treeLines)
        return ReceivedTree(knowledge: knowledge, current: current, left: left)
    }

    private static func bodies(_ json: JSONElement?, arePlain: Bool) throws(ReplyError) -> [RevisionID:
        JSONText]
    {
        var bodies: [RevisionID: JSONText] = [:]
        for (text, element) in json?.memberList ?? [] {
            guard let id = RevisionID(received: text), element.kind == .object,
                bodies.count < ReplicationTuning.treeLines
            else {
                throw invalid("a body that is none")
            }
            let bytes = Array(element.bytes)
            guard (try? JSONElement(scanning: bytes, limits: JSONLimits(refusesDuplicateKeys: true))) != nil
            else {
                throw invalid("a body in which a key occurs twice")
            }
            // Reserved names are never stored. Few bodies have a string that could be one.
            if !arePlain, bytes.contains(word: "\"_") || bytes.contains(word: "\\u") {
                guard !element.members.contains(where: { $0.key.hasPrefix("_") && $0.key != "_attachments" })
                else {
                    throw invalid("a body with reserved names")
                }
            }
            bodies[id] = JSONText(trusted: bytes)
        }
        return bodies
    }

    private static func vectors(_ json: JSONElement?, of nodes: [RevisionTree.Node])
        throws(ReplyError) -> [RevisionID: VersionVector]
    {
        // Most trees have none.
        guard let json else { return [:] }
        let known = Set(nodes.map(\.id))
        var vectors: [RevisionID: VersionVector] = [:]
        for (text, element) in json.memberList {
            guard let id = RevisionID(received: text), known.contains(id),
                let vector = element.string.flatMap({ try? VersionVector($0) }), !vector.isEmpty
            else {
                throw invalid("a version vector that is none")
            }
            vectors[id] = vector
        }
        return vectors
    }

    private static func revisions(_ json: JSONElement?, atMost limit: Int) throws(ReplyError) -> [RevisionID]
    {
        guard let json else { return [] }
        guard json.count <= limit else { throw invalid("too many revisions") }
        var revisions: [RevisionID] = []
        for item in json.items {
            guard let id = item.string.flatMap({ RevisionID(received: $0) }) else {
                throw invalid("no revision ID")
            }
            revisions.append(id)
        }
        return revisions
    }

    private static func invalid(_ what: String) -> ReplyError {
        ReplyError("HTTP", 400, "invalid tree: \(what)")
    }
}

/// A tree that a peer has sent.
package struct ReceivedTree: Sendable {
    package var knowledge: TreeKnowledge
    /// The peer's current revision.
    package let current: RevisionID
    /// The leaves whose content the peer has and did not send, since there was no room.
    package let left: [RevisionID]
}

extension JSONElement {
    fileprivate var memberList: [(key: String, value: JSONElement)] { members.map { $0 } }
    fileprivate var itemList: [JSONElement] { items.map { $0 } }
}
