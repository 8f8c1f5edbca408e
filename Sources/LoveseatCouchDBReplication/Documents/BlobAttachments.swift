package import LoveseatModel

/// Blobs in properties, as attachments of CouchDB's wire: `blob_` and the path of the property (protocol/replication.md §11.5).
package enum BlobAttachments {
    private static let prefix = "blob_"

    /// The attachments that stand for a body's blobs. `generation`: that of the revision.
    package static func all(in body: JSONText, generation: UInt32) -> [StoredAttachment] {
        guard body.bytes.contains("@type", "\\u", "\\u") else { return [] }
        var found: [StoredAttachment] = []
        visit(JSONElement(body), path: "") { path, element in
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

    /// The blob of a body that an attachment of this name stands for; nil if there is none.
    package static func blob(_ name: String, in body: JSONText) -> BlobReference? {
        guard name.hasPrefix(prefix), body.bytes.contains("@type", "\\u", "\\u") else { return nil }
        var found: BlobReference?
        visit(JSONElement(body), path: "") { path, element in
            if prefix + path == name { found = BlobReference(element.value) }
        }
        return found
    }

    /// The blob of a body that an attachment only repeats, as ours do that come back; nil if it does not.
    package static func repeated(_ name: String, _ digest: String?, in body: JSONText) -> BlobReference? {
        guard let blob = blob(name, in: body) else { return nil }
        return digest == nil || digest == blob.digest.text || digest?.hasPrefix("sha1-") == false ? blob : nil
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
                    stack.append(("\(path)/\(key.replacingSlashes)", value))
                }
            case .array:
                for (index, value) in element.items.enumerated()
                where value.kind == .object || value.kind == .array {
                    stack.append(("\(path)/\(index)", value))
                }
            default: break
            }
        }
    }
}

extension String {
    /// As JSON pointers write keys.
    fileprivate var replacingSlashes: String {
        guard utf8.contains(where: { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "~") }) else {
            return self
        }
        return reduce(into: "") { text, character in
            switch character {
            case "~": text += "~0"
            case "/": text += "~1"
            default: text.append(character)
            }
        }
    }
}
