import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel

/// The content of a request as it was before it was compressed.
struct BodyInflater {
    private let gzip: GzipInflater?

    init(encoding: String?) throws(CouchDBError) {
        switch encoding?.lowercased() {
        case nil, "identity", "": gzip = nil
        case "gzip":
            do { gzip = try GzipInflater() } catch {
                throw CouchDBError(503, "service_unavailable", "no memory to inflate")
            }
        case let other?:
            throw CouchDBError(415, "bad_content_type", "\(other) is not a supported content encoding.")
        }
    }

    mutating func inflate(_ piece: UnsafeRawBufferPointer, into bytes: inout [UInt8], limit: Int) throws {
        func check(_ count: Int) throws {
            if count > limit {
                throw CouchDBError(413, "too_large", "the request is larger than \(limit) bytes")
            }
        }
        guard let gzip else {
            try check(bytes.count + piece.count)
            bytes.append(contentsOf: piece)
            return
        }
        do {
            try gzip.inflate(piece) {
                try check(bytes.count + $0.count)
                bytes.append(contentsOf: $0)
            }
        } catch let error as LoveseatError {
            throw CouchDBError.badRequest(error.message)
        }
    }

    func finish() throws {
        if let gzip, !gzip.isEnded { throw CouchDBError.badRequest("the compressed content is cut") }
    }
}
