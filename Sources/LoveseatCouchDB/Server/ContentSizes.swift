import LoveseatModel
import LoveseatStorage

/// The bytes of documents and of the content that they refer to. They are numbers with a fraction, because a peer's references may have
/// any length.
struct ContentSizes {
    private(set) var documents = 0.0
    private(set) var blobs = 0.0

    /// How many documents, and how many of their bytes, are measured to estimate the rest.
    private static let sample = (documents: 1_000, bytes: 1e6)

    init() {}

    /// Measures a collection, and beyond the first thousand documents, or megabyte, assumes the others to be alike. `count`: the number
    /// of documents, deleted ones among them.
    init(of collection: CollectionHandle, count: Int, in view: StoreReadTransaction) throws {
        var measured = 0
        try view.changes(in: collection, since: 0) { record in
            add(record)
            measured += 1
            return measured < Self.sample.documents && documents < Self.sample.bytes
        }
        if measured == 0 || measured >= count { return }
        let factor = Double(count) / Double(measured)
        (documents, blobs) = (documents * factor, blobs * factor)
    }

    mutating func add(_ record: DocumentRecord) {
        documents += Double(record.body.bytes.count)
        for blob in BlobReference.all(in: record.body) { blobs += Double(blob.length ?? 0) }
    }

    /// The object `sizes` of a database. `file`: the bytes of the file that the documents are in, and those of its used pages; nil for a
    /// client that may not read all of it.
    func json(file: (all: UInt64, used: UInt64)?) -> JSONValue {
        /// The greatest number that every reader of JSON has exactly.
        func whole(_ bytes: Double) -> JSONValue { JSONValue(Int(min(bytes.rounded(), 9e15))) }
        return [
            "file": whole(blobs + (file.map { Double($0.all) } ?? documents)),
            "active": whole(blobs + (file.map { Double($0.used) } ?? documents)),
            "external": whole(blobs + documents),
        ]
    }
}
