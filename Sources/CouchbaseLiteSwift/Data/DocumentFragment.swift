/// A document that was found by a collection's subscript. It need not exist.
public final class DocumentFragment: DictionaryFragment {
    /// The document; nil if it does not exist, or could not be read.
    public let document: Document?

    init(_ document: Document?) { self.document = document }

    /// Whether the document exists.
    public var exists: Bool { document != nil }

    /// The value of a property.
    public subscript(key: String) -> Fragment { Fragment(document?._stored(forKey: key)) }
}
