/// The `_attachments` table of a stored body: attachments that REST clients and 1.x apps made, which no blob of the body
/// stands for.
extension JSONText {
    private static let table = "_attachments"

    /// A canonical body to be stored in place of an older one: with the older one's attachments, unless the body has a table itself. An
    /// empty table, `"_attachments": {}`, removes them.
    package func keepingAttachments(of old: JSONText?) -> JSONText {
        if bytes.containsString(beginningWith: "_attachments"), let own = JSONElement(self)[Self.table] {
            guard own.kind == .object, own.count == 0 else { return self }
            return with(attachments: nil)
        }
        guard let old, old.bytes.contains(word: "_attachments"), let kept = JSONElement(old)[Self.table],
            kept.kind == .object, kept.count > 0
        else { return self }
        return with(attachments: kept.value)
    }

    private func with(attachments: JSONValue?) -> JSONText {
        guard case .object(var members) = JSONElement(self).value else { return self }
        members[Self.table] = attachments
        return JSONText(canonical: .object(members))
    }
}

extension Document {
    /// Returns an attachment by its name, or nil if there is none.
    ///
    /// Attachments are blobs that a REST client or a 1.x app added beside the properties; today's apps keep blobs in
    /// properties, see ``blob(_:)``. Attachments stay when the document is saved; save `"_attachments": {}` to remove
    /// them.
    public func attachment(_ name: String) -> BlobReference? {
        element["_attachments"]?[name].flatMap { BlobReference(attachment: $0) }
    }
}
