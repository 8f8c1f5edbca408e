import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatStorage

/// The long attachments of one request that came as Base64 within its JSON. They are on the disk, and become blobs once their documents
/// are allowed.
final class InlineContents {
    private let blobs: BlobFiles
    /// The size that they may have together, in bytes.
    private let limit: UInt64
    /// The budget that all requests share.
    private let budget: BodyBudget
    /// Their size so far, in bytes, which is taken from the budget.
    private var size = 0
    private var scanner: InlineContentScanner
    private var decoder = BulkBase64.Decoder()
    private var open: BlobWriter?
    private var waiting: [BlobWriter] = []
    /// Their lengths in bytes, in the order of the text.
    private var lengths: [Int] = []

    init(_ blobs: BlobFiles, isBatch: Bool, limit: UInt64, budget: BodyBudget) {
        self.blobs = blobs
        self.limit = limit
        self.budget = budget
        let mark = "*\(String(UInt64.random(in: .min ... .max), radix: 16))-"
        scanner = InlineContentScanner(isBatch: isBatch, mark: Array(mark.utf8))
    }

    deinit { budget.give(size) }

    var takenOut: TakenOutContents { TakenOutContents(mark: scanner.mark, lengths: lengths) }

    /// Takes the attachments out of the next piece of a request, and appends the rest of it to `text`.
    func receive(_ piece: UnsafeRawBufferPointer, into text: inout [UInt8]) throws {
        try scanner.scan(piece, into: &text) { content in
            switch content {
            case .digits(let digits): try write(digits.withUnsafeBufferPointer { decoder.decode($0) })
            case .ended:
                guard let last = decoder.finish() else { throw Self.invalid }
                try write(last)
                decoder = BulkBase64.Decoder()
                guard let writer = open else { throw Self.invalid }
                open = nil
                writer.rest()
                lengths.append(Int(clamping: writer.length))
                waiting.append(writer)
            }
        }
    }

    private static var invalid: CouchDBError { .badRequest("Invalid attachment data: it is not Base64") }

    private func write(_ bytes: [UInt8]) throws {
        guard decoder.isValid else { throw Self.invalid }
        guard UInt64(size + bytes.count) <= limit else {
            throw CouchDBError(413, "too_large", "the attachments are larger than \(limit) bytes")
        }
        try budget.reserve(bytes.count)
        size += bytes.count
        let writer = try open ?? blobs.writer(hashesMD5: true)
        open = writer
        if !bytes.isEmpty { try writer.write(bytes) }
    }

    /// Stores a content, once, and keeps it until its document is stored.
    func store(_ number: Int, _ pins: BlobPins) throws -> BlobDigest {
        try pins.finish(waiting[number]).digest
    }
}

extension Resource {
    /// Reads a body with documents, and calls a closure with its text and with the attachments that were taken out of it.
    ///
    /// `isBatch`: whether the documents are in an array `docs`.
    func withDocuments<T: Sendable>(
        _ exchange: Exchange,
        _ entry: Databases.Entry,
        isBatch: Bool,
        _ use: ([UInt8], InlineContents) async throws -> T
    ) async throws -> T {
        let contents = InlineContents(
            entry.store.blobs,
            isBatch: isBatch,
            limit: server.settings.maximumInlineAttachments,
            budget: server.budgets.inline
        )
        return try await withBody(exchange, through: contents.receive) { try await use($0, contents) }
    }
}
