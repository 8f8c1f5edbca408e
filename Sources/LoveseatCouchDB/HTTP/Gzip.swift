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

    /// Calls a closure with the content of a piece of the request, in pieces of limited size.
    func inflate(_ piece: UnsafeRawBufferPointer, _ use: (UnsafeRawBufferPointer) throws -> Void) throws {
        guard let gzip else { return try use(piece) }
        do { try gzip.inflate(piece) { try $0.withUnsafeBytes(use) } } catch let error as LoveseatError
            where error.code == .corruptData
        {
            throw CouchDBError.badRequest(error.message)
        }
    }

    func finish() throws {
        if let gzip, !gzip.isEnded { throw CouchDBError.badRequest("the compressed content is cut") }
    }
}
