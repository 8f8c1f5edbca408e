public import Foundation
import LoveseatCore
import LoveseatModel

/// Content that is kept beside documents, such as an image. A document refers to it.
///
/// A new blob is stored when a document that contains it is saved.
public final class Blob: Equatable, Hashable, Codable {
    /// The value of ``typeProperty`` in a blob's properties.
    public static let blobType = "blob"
    /// The property that says that an object is a blob.
    public static let typeProperty = "@type"
    /// The property with the digest.
    public static let blobDigestProperty = "digest"
    /// The property with the length in bytes.
    public static let blobLengthProperty = "length"
    /// The property with the media type.
    public static let blobContentType = "content_type"

    private enum Source {
        case data(Data)
        case stream(InputStream)
        case file(URL)
        /// Only the database has the content.
        case stored
    }

    /// Contents up to this size stay in memory after they are stored.
    private static let keptInMemory = 8 << 10

    /// The media type, such as `image/jpeg`; nil if the document does not name it.
    public let contentType: String?
    /// Guards what follows, because documents that cannot change are read by several threads.
    private let lock = NSLock()
    private var source: Source
    /// Nil until the blob is stored.
    private var reference: BlobReference?
    private var database: EngineDatabase?
    /// The path of the database, also after it was closed.
    private var folder: String?

    /// Creates a blob of bytes in memory.
    public convenience init(contentType: String, data: Data) { self.init(contentType, .data(data)) }

    /// Creates a blob of a stream, which is read when the content is needed first.
    public convenience init(contentType: String, contentStream: InputStream) {
        self.init(contentType, .stream(contentStream))
    }

    /// Creates a blob of a file, which is read when the blob is stored. A URL that is not a file's ends the program.
    ///
    /// - Throws: `cantOpenFile` if the file cannot be read.
    public convenience init(contentType: String, fileURL: URL) throws {
        guard fileURL.isFileURL else { programmerError("\(fileURL) is not the URL of a file") }
        guard FileManager.default.isReadableFile(atPath: fileURL.path) else {
            throw CBLError.make(CBLError.cantOpenFile, "cannot read \(fileURL.path)")
        }
        self.init(contentType, .file(fileURL))
    }

    private init(_ contentType: String, _ source: Source) {
        self.contentType = contentType
        self.source = source
    }

    /// A blob that a document refers to.
    init(_ reference: BlobReference, _ database: EngineDatabase?) {
        contentType = reference.contentType
        source = .stored
        self.reference = reference
        self.database = database
        folder = database?.path
    }

    /// A blob by its properties; nil if the digest is not one.
    convenience init?(properties: [String: Any]) {
        guard let digest = (properties[Self.blobDigestProperty] as? String).flatMap({ BlobDigest($0) }) else {
            return nil
        }
        let length = properties[Self.blobLengthProperty].map { _StoredValue(any: $0).int64 }
        self.init(
            BlobReference(
                digest: digest,
                length: length.flatMap { UInt64(exactly: $0) },
                contentType: properties[Self.blobContentType] as? String
            ),
            nil
        )
    }

    // MARK: Content

    /// The whole content; nil if the database does not have it, or it cannot be read.
    ///
    /// The content of a blob that came from JSON can be read after its document was saved; before, this ends the program.
    public var content: Data? { lock.withLock { loadedContent() } }

    private func loadedContent() -> Data? {
        switch source {
        case .data(let data): return data
        case .file(let url): return try? Data(contentsOf: url)
        case .stream(let stream):
            let data = Data(reading: stream)
            source = .data(data)
            return data
        case .stored:
            guard let database, let reference else {
                programmerError("the content of a blob from JSON can be read after its document was saved")
            }
            return try? database.blobContent(reference)
        }
    }

    /// A stream of the content, which is not open; nil if the content cannot be read.
    public var contentStream: InputStream? {
        if case .file(let url) = lock.withLock({ source }) { return InputStream(url: url) }
        return content.map { InputStream(data: $0) }
    }

    /// The length of the content in bytes.
    public var length: UInt64 {
        lock.withLock {
            if let length = reference?.length { return length }
            if case .file(let url) = source {
                // A file that is gone has no content either.
                let attributes = try? FileManager.default.attributesOfItem(atPath: url.path)
                return (attributes?[.size] as? NSNumber)?.uint64Value ?? 0
            }
            if case .stored = source, database == nil { return 0 }
            return UInt64(loadedContent()?.count ?? 0)
        }
    }

    /// The digest, `sha1-` and the Base64 of the content's SHA-1; nil until the blob is stored.
    public var digest: String? { lock.withLock { reference?.digest.text } }

    /// The part of a blob that documents contain: its type, digest, length and media type.
    public var properties: [String: Any] {
        var properties: [String: Any] = [
            Self.typeProperty: Self.blobType,
            Self.blobLengthProperty: NSNumber(value: length),
        ]
        properties[Self.blobDigestProperty] = digest
        properties[Self.blobContentType] = contentType
        return properties
    }

    /// The properties as JSON text. A blob that was never stored has none, which ends the program.
    public func toJSON() -> String { JSONText(canonical: json).description }

    /// The reference that documents contain.
    var json: JSONValue {
        guard let reference = lock.withLock({ reference }) else {
            programmerError("a blob has JSON text after it was saved")
        }
        return reference.json
    }

    /// Returns whether properties are those of a blob.
    public static func isBlob(properties: [String: Any]) -> Bool {
        (properties[typeProperty] as? String).isExactly(blobType) && properties[blobDigestProperty] is String
            && (properties[blobContentType].map { $0 is String } ?? true)
            && (properties[blobLengthProperty].map { $0 is NSNumber || $0 is any BinaryInteger } ?? true)
    }

    // MARK: Storing

    /// Stores the content, if it is not stored yet.
    ///
    /// - Throws: `unexpectedError` if it is in another database.
    func install(into database: EngineDatabase) throws {
        try lock.withLock {
            if let own = self.database {
                guard own === database || folder.isExactly(database.path) else {
                    throw CBLError.make(
                        CBLError.unexpectedError,
                        "A document contains a blob that was saved to a different database. The save operation cannot complete."
                    )
                }
            }
            // A compaction may have removed what no document referred to.
            if !isOnlyStored, !isStored(in: database) {
                reference = try CBLError.converting { try store(in: database) }
            }
            self.database = database
            folder = database.path
        }
    }

    private var isOnlyStored: Bool { if case .stored = source { true } else { false } }

    private func isStored(in database: EngineDatabase) -> Bool {
        guard let reference else { return false }
        // If that cannot be found out, storing the content says why.
        return ((try? database.blobLength(reference)) ?? nil) != nil
    }

    private func store(in database: EngineDatabase) throws -> BlobReference {
        if case .file(let url) = source {
            defer { source = .stored }
            return try database.saveBlob(fileURL: url, contentType: contentType)
        }
        let content = loadedContent() ?? Data()
        let reference = try database.saveBlob(content, contentType: contentType)
        if content.count > Self.keptInMemory { source = .stored }
        return reference
    }

    // MARK: Equality

    /// Returns whether both have the same content.
    public static func == (lhs: Blob, rhs: Blob) -> Bool {
        if lhs === rhs { return true }
        if let one = lhs.digest, let other = rhs.digest { return one.isExactly(other) }
        return lhs.content == rhs.content
    }

    /// Hashes the length, since equal blobs need not both have a digest.
    public func hash(into hasher: inout Hasher) { hasher.combine(length) }

    // MARK: Codable

    /// Decodes a blob, in models of documents only.
    ///
    /// - Throws: `decodingError` with any other decoder.
    public convenience init(from decoder: any Decoder) throws {
        throw CBLError.make(CBLError.decodingError, "a blob can be decoded only as part of a document")
    }

    /// Encodes the blob, in models of documents only.
    ///
    /// - Throws: `encodingError` with any other encoder.
    public func encode(to encoder: any Encoder) throws {
        throw CBLError.make(CBLError.encodingError, "a blob can be encoded only as part of a document")
    }
}

extension Data {
    /// Everything that is left in a stream.
    fileprivate init(reading stream: InputStream) {
        self.init()
        stream.open()
        defer { stream.close() }
        var piece = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = stream.read(&piece, maxLength: piece.count)
            if count <= 0 { return }
            append(contentsOf: piece[..<count])
        }
    }
}
