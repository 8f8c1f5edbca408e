package import LoveseatModel

/// Blobs in properties, as attachments of CouchDB's wire: `blob_` and the path of the property (protocol/replication.md §11.5).
package enum BlobAttachments {
    private static let prefix = "blob_"

    /// The attachments that stand for a body's blobs. `generation`: that of the revision.
    package static func all(in body: JSONText, generation: UInt32) -> [StoredAttachment] {
        guard body.bytes.contains("@type", "\\u", "\\u") else { return [] }
        var found: [StoredAttachment] = []
        visit(JSONElement(body), path: "") { path, element in
            // An app or a peer may write the type of a blob without a valid digest.
            guard let blob = BlobReference(element.value) else { return }
            var attachment = StoredAttachment(
                name: prefix + path,
                contentType: blob.contentType ?? "application/octet-stream",
                digest: blob.digest,
                length: Int(clamping: blob.length ?? 0),
                position: Int(generation)
            )
            attachment.encoding = blob.encoding
            attachment.encodedLength = blob.encodedLength
            found.append(attachment)
        }
        return found
    }

    /// The blobs of a body that are said to be compressed.
    package static func compressed(in body: JSONText) -> [BlobReference] {
        guard body.bytes.contains("@type", "\\u", "\\u") else { return [] }
        var found: [BlobReference] = []
        visit(JSONElement(body), path: "") { _, element in
            if let blob = BlobReference(element.value), blob.isCompressed { found.append(blob) }
        }
        return found
    }

    /// The blob of a body that an attachment of this name stands for; nil if there is none.
    package static func blob(_ name: String, in body: JSONText) -> BlobReference? {
        guard name.beginsExactly(with: prefix), body.bytes.contains("@type", "\\u", "\\u") else { return nil }
        var found: BlobReference?
        visit(JSONElement(body), path: "") { path, element in
            if name.isExactly(prefix + path) { found = BlobReference(element.value) }
        }
        return found
    }

    /// The blob of a body that an attachment only repeats, as ours do that come back; nil if it does not.
    ///
    /// `md5`: the MD5 of a blob, by which other peers name it; nil if it is not known, and then they are taken at their word.
    package static func repeated(
        _ name: String,
        _ digest: String?,
        in body: JSONText,
        md5: (BlobDigest) throws -> MD5Digest?
    ) rethrows -> BlobReference? {
        guard let blob = blob(name, in: body) else { return nil }
        guard let digest, !digest.isExactly(blob.digest.text) else { return blob }
        if digest.hasPrefix("sha1-") { return nil }
        guard let named = MD5Digest(digest), let known = try md5(blob.digest) else { return blob }
        return named == known ? blob : nil
    }

    /// A body in whose blobs the attachments that stand for them have their place: a client of this wire that replaces such an attachment
    /// replaces the content of the blob.
    package static func absorbed(_ body: JSONValue) -> JSONValue {
        guard let table = body["_attachments"]?.object else { return body }
        var (body, kept) = (body, table)
        for (name, attachment) in table where name.beginsExactly(with: prefix + "/") {
            let path = name.utf8.dropFirst(prefix.utf8.count + 1)
                .split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
                .map { JSONPointer.unescaped(String(decoding: $0, as: UTF8.self)) }
            guard path[0].utf8.first != UInt8(ascii: "_") else { continue }
            guard let new = replaced(body, at: path[...], by: attachment) else { continue }
            (body, kept[name]) = (new, nil)
        }
        body["_attachments"] = kept.isEmpty ? nil : .object(kept)
        return body
    }

    /// The value with another blob where the path leads; nil if it does not lead to a blob.
    private static func replaced(_ value: JSONValue, at path: ArraySlice<String>, by attachment: JSONValue)
        -> JSONValue?
    {
        guard let key = path.first else {
            guard value["@type"] == "blob" else { return nil }
            guard value["digest"] != attachment["digest"] else { return value }
            var blob = value
            for name in ["digest", "length", "content_type", "encoding", "encoded_length"] {
                blob[name] = attachment[name]
            }
            return blob
        }
        guard value["@type"] != "blob" else { return nil }
        switch value {
        case .object(var members):
            guard let member = members[key] else { return nil }
            guard let new = replaced(member, at: path.dropFirst(), by: attachment) else { return nil }
            members[key] = new
            return .object(members)
        case .array(var items):
            guard let index = Int(key), items.indices.contains(index) else { return nil }
            guard let new = replaced(items[index], at: path.dropFirst(), by: attachment) else { return nil }
            items[index] = new
            return .array(items)
        case .null, .bool, .number, .string: return nil
        }
    }

    private static func visit(_ root: JSONElement, path: String, _ body: (String, JSONElement) -> Void) {
        // Depth is bounded by the limits of parsing, but a stack of our own is safer than that of the thread.
        var stack: [(String, JSONElement)] = [(path, root)]
        while let (path, element) = stack.popLast() {
            switch element.kind {
            case .object where element["@type"]?.string == "blob": body(path, element)
            case .object:
                for (key, value) in element.members where !(path.isEmpty && key == "_attachments") {
                    guard value.kind == .object || value.kind == .array else { continue }
                    stack.append(("\(path)/\(JSONPointer.escaped(key))", value))
                }
            case .array:
                for (index, value) in element.items.enumerated()
                where value.kind == .object || value.kind == .array {
                    stack.append(("\(path)/\(index)", value))
                }
            case .null, .boolean, .number, .string: break
            }
        }
    }
}
