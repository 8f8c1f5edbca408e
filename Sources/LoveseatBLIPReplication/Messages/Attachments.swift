import LoveseatBLIP
import LoveseatModel

/// The `_attachments` table, by which gateways and 1.x apps name the blobs of a document (replication.md §11.5).
///
/// Bodies are changed as text: the parts that a peer or an app wrote stay the same, to the byte.
enum Attachments {
    /// The result of reading a received body.
    struct Stored {
        let body: JSONText
        /// The digests that the table lists; nil without a table.
        let listed: Set<ExactText>?
        /// The digests that the body names in spite of the table.
        let preferred: Set<ExactText>
        /// The document left every channel that this peer may see.
        let isRemoved: Bool
        /// The names of properties that an app or another client may have set, and that are not stored.
        let leftOut: [String]
    }

    private static let name = "_attachments"
    /// Properties that are about the document, and not a part of it.
    private static let metadata: Set<ExactText> = ["_attachments", "_removed", "_id", "_rev", "_deleted"]

    // MARK: Received bodies

    /// The text to store: as it came, without the reserved properties at the top. Entries of the table stay if no blob of the
    /// body stands for them.
    ///
    /// `generation`: of the revision. With nil, the table decides about every blob of which it names another content.
    static func stored(_ bytes: [UInt8], generation: UInt32?) throws(ReplyError) -> Stored {
        guard !bytes.isEmpty else { return stored(.emptyObject) }
        let root: JSONElement
        // SQLite reads the first of two equal keys, and we the last.
        do throws(JSONError) {
            root = try JSONElement(scanning: bytes, limits: JSONLimits(refusesDuplicateKeys: true))
        } catch { throw ReplyError("HTTP", 400, "\(error)") }
        guard root.kind == .object else { throw ReplyError("HTTP", 400, "the body is not a JSON object") }
        guard root.hasKey(beginningWith: UInt8(ascii: "_")) else {
            return stored(JSONText(trusted: bytes))
        }
        let isRemoved = root["_removed"]?.bool == true
        let table = root[name]
        guard table?.count ?? 0 <= ReplicationTuning.attachments else {
            throw ReplyError("HTTP", 413, "more than \(ReplicationTuning.attachments) attachments")
        }
        var edits: [Int: (end: Int, text: [UInt8])] = [:]
        var preferred: Set<ExactText> = []
        let kept = table.map { remaining($0, in: root, generation, &edits, &preferred) } ?? []
        var members: [[UInt8]] = []
        var leftOut: [String] = []
        for (key, value) in root.rawMembers {
            guard let key, let text = key.string else { continue }
            if !isReserved(text) {
                members.append(key.bytes + [UInt8(ascii: ":")] + edited(value.bytes, edits))
            } else if !kept.isEmpty, value.bytes.startIndex == table?.bytes.startIndex {
                members.append(key.bytes + [UInt8(ascii: ":")] + object(kept))
            } else if !metadata.contains(ExactText(text)) {
                leftOut.append(text)
            }
        }
        let listed = table.map {
            Set($0.members.compactMap { $0.value["digest"]?.string.map { ExactText($0) } })
        }
        return Stored(
            body: JSONText(trusted: object(members)),
            listed: listed,
            preferred: preferred,
            isRemoved: isRemoved,
            leftOut: leftOut
        )
    }

    private static func stored(_ body: JSONText) -> Stored {
        Stored(body: body, listed: nil, preferred: [], isRemoved: false, leftOut: [])
    }

    private static func isReserved(_ key: String) -> Bool { key.utf8.first == UInt8(ascii: "_") }

    /// The entries that no blob of the body stands for. A blob whose attachment was replaced gets the new content, but not from an entry of
    /// an earlier generation: gateways keep such an entry when a blob goes back to bytes that it had before.
    private static func remaining(
        _ table: JSONElement,
        in root: JSONElement,
        _ generation: UInt32?,
        _ edits: inout [Int: (end: Int, text: [UInt8])],
        _ preferred: inout Set<ExactText>
    ) -> [[UInt8]] {
        var digests: Set<ExactText> = []
        forEachBlob(root, path: "blob_") { _, blob in
            if let digest = blob["digest"]?.string { digests.insert(ExactText(digest)) }
        }
        var kept: [[UInt8]] = []
        for (key, entry) in table.rawMembers {
            guard let key, let text = key.string else { continue }
            let path = text.utf8.starts(with: "blob_".utf8) ? text.utf8.dropFirst(5) : nil
            // The form of 2.0 numbered the entries.
            if let first = path?.first, (0x30...0x39).contains(first) { continue }
            if let path, path.first == UInt8(ascii: "/"), let blob = blob(at: path.dropFirst(), in: root) {
                let range = blob.bytes
                guard let digest = blob["digest"]?.string,
                    !digest.isExactly(entry["digest"]?.string ?? "")
                else { continue }
                if let generation, let added = entry["revpos"]?.int, added < Int64(generation) {
                    preferred.insert(ExactText(digest))
                } else if edits[range.startIndex] == nil {
                    edits[range.startIndex] = (range.endIndex, replaced(blob, by: entry))
                }
                continue
            }
            if let digest = entry["digest"]?.string, digests.contains(ExactText(digest)) { continue }
            kept.append(key.bytes + [UInt8(ascii: ":")] + entry.bytes)
        }
        return kept
    }

    /// The blob that a path leads to. Its parts are escaped as JSON pointers are; gateways and older peers may not have
    /// escaped them.
    private static func blob(at path: Substring.UTF8View, in root: JSONElement) -> JSONElement? {
        let parts = path.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            .map { String(decoding: $0, as: UTF8.self) }
        if let found = walk(parts.map(JSONPointer.unescaped)[...], from: root, joinsParts: false) {
            return found
        }
        guard parts.count <= ReplicationTuning.rawPathParts else { return nil }
        return walk(parts[...], from: root, joinsParts: true)
    }

    private static func walk(_ parts: ArraySlice<String>, from element: JSONElement, joinsParts: Bool)
        -> JSONElement?
    {
        let isBlob = isBlob(element)
        guard let first = parts.first else { return isBlob ? element : nil }
        guard !isBlob else { return nil }
        if element.kind == .array {
            guard let item = Int(first).flatMap({ element[$0] }) else { return nil }
            return walk(parts.dropFirst(), from: item, joinsParts: joinsParts)
        }
        for count in 1...(joinsParts ? parts.count : 1) {
            guard let child = element[parts.prefix(count).joined(separator: "/")] else { continue }
            let found = walk(parts.dropFirst(count), from: child, joinsParts: joinsParts)
            if let found { return found }
        }
        return nil
    }

    private static func isBlob(_ element: JSONElement) -> Bool { element["@type"]?.string == "blob" }

    /// A blob's text with the members of its attachment instead of its own, and without the length and the type of the old content.
    private static func replaced(_ blob: JSONElement, by attachment: JSONElement) -> [UInt8] {
        var members: [[UInt8]] = []
        for (key, value) in blob.rawMembers {
            guard let key, let text = key.string else { continue }
            if let other = attachment[text] {
                members.append(key.bytes + [UInt8(ascii: ":")] + other.bytes)
            } else if text != "length", text != "content_type" {
                members.append(key.bytes + [UInt8(ascii: ":")] + value.bytes)
            }
        }
        return object(members)
    }

    /// A piece of text with some places of the whole text, by where they begin, replaced.
    private static func edited(_ text: ArraySlice<UInt8>, _ edits: [Int: (end: Int, text: [UInt8])])
        -> [UInt8]
    {
        var result: [UInt8] = []
        var position = text.startIndex
        for (start, edit) in edits.sorted(by: { $0.key < $1.key })
        where start >= text.startIndex && edit.end <= text.endIndex {
            result += text[position..<start] + edit.text
            position = edit.end
        }
        return result + text[position...]
    }

    private static func object(_ members: [[UInt8]]) -> [UInt8] {
        [UInt8(ascii: "{")] + members.joined(separator: [UInt8(ascii: ",")]) + [UInt8(ascii: "}")]
    }

    // MARK: Sent bodies

    /// The body with a table, for peers that do not look for blobs in it. `generation`: of the revision; nil for one that has a version.
    static func adding(to body: JSONText, generation: UInt32?) -> JSONText {
        let root = JSONElement(body)
        var entries: [[UInt8]] = []
        forEachBlob(root, path: "blob_") { path, blob in
            var members: [[UInt8]] = []
            for (key, value) in blob.rawMembers {
                guard let key, let text = key.string, !["@type", "stub", "revpos"].contains(text) else {
                    continue
                }
                members.append(key.bytes + [UInt8(ascii: ":")] + value.bytes)
            }
            members.append(Array(#""stub":true"#.utf8))
            if let generation { members.append(Array("\"revpos\":\(generation)".utf8)) }
            let key = JSONText(canonical: .string(path)).bytes
            entries.append(key + [UInt8(ascii: ":")] + object(members))
        }
        guard !entries.isEmpty else { return body }
        for (key, value) in root[name]?.rawMembers.map({ $0 }) ?? [] {
            guard let key, let text = key.string, !text.utf8.starts(with: "blob_".utf8) else { continue }
            entries.append(key.bytes + [UInt8(ascii: ":")] + value.bytes)
        }
        var members: [[UInt8]] = []
        for (key, value) in root.rawMembers {
            guard let key, !key.string.isExactly(name) else { continue }
            members.append(key.bytes + [UInt8(ascii: ":")] + value.bytes)
        }
        members.append(Array("\"\(name)\":".utf8) + object(entries))
        return JSONText(trusted: object(members))
    }

    /// Visits every blob with its path; does not look inside a blob, nor into reserved properties.
    private static func forEachBlob(
        _ element: JSONElement,
        path: String,
        isRoot: Bool = true,
        _ visit: (String, JSONElement) -> Void
    ) {
        switch element.kind {
        case .object where isBlob(element): visit(path, element)
        case .object:
            for (key, value) in element.members where !(isRoot && isReserved(key)) {
                forEachBlob(value, path: "\(path)/\(JSONPointer.escaped(key))", isRoot: false, visit)
            }
        case .array:
            for (index, item) in element.items.enumerated() {
                forEachBlob(item, path: "\(path)/\(index)", isRoot: false, visit)
            }
        case .null, .boolean, .number, .string: break
        }
    }
}
