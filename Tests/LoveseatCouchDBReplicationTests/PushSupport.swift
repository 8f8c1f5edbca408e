import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatReplication
import Testing

/// Documents, a page of which is read at once.
final class PushedDocuments: PushSource {
    var pages: [PushPage] = []
    /// The documents with attachments, and whether their content is here.
    var attachments: [String: Bool] = [:]
    var rendered: [String] = []

    func nextPage(after done: SequenceSet) throws -> PushPage? {
        pages.first { !done.contains($0.range.upperBound) }
    }

    func render(_ leaf: PushedLeaf, isInline: Bool) -> RenderedDocument {
        let form = isInline ? "inline" : leaf.isWhole ? "whole" : "parts"
        rendered.append("\(leaf.documentID) \(form)")
        let hasParts = attachments[leaf.documentID] != nil && !isInline
        return RenderedDocument(
            pieces: [.bytes(Array("{\"_id\":\"\(leaf.documentID)\"}".utf8))],
            parts: hasParts ? [Self.attachment(leaf.documentID)] : []
        )
    }

    func contains(_ blob: BlobDigest) -> Bool {
        attachments.contains { $0.value && Self.attachment($0.key).digest == blob }
    }

    private static func attachment(_ id: String) -> StoredAttachment {
        StoredAttachment(
            name: "a",
            contentType: "text/plain",
            digest: BlobDigest(sha1: Array(id.utf8) + [UInt8](repeating: 0, count: 20 - id.utf8.count)),
            length: 10,
            position: 1
        )
    }
}

/// A push whose requests a test answers.
struct Push {
    typealias Request = PushMachine.Request

    var machine: PushMachine
    let documents = PushedDocuments()
    let checkpoints = RecordedCheckpoints()
    var reports: [SessionReport] = []
    /// The requests so far, in words.
    var log: [String] = []

    init(_ ids: [String], attachments: [String: Bool] = [:], leaves: Int = 1) {
        machine = PushMachine(documents, checkpoints, collection: 0)
        documents.attachments = attachments
        if !ids.isEmpty { add(ids, after: 0, leaves: leaves) }
    }

    func add(_ ids: [String], after sequence: UInt64, leaves: Int = 1) {
        var page = PushPage(sequence + 1...sequence + UInt64(ids.count))
        page.documents = ids.enumerated().map { index, id in
            PushPage.Document(
                id: id,
                sequence: sequence + UInt64(index) + 1,
                revision: .test(1, "a"),
                isDeleted: false,
                leaves: (0..<leaves).map { .test(1, String(UnicodeScalar(UInt8(97 + $0)))) }
            )
        }
        documents.pages.append(page)
    }

    /// Runs until nothing is to be done. `answer`: answers a request that is not about differences; nil for success.
    mutating func run(atOnce limit: Int = 8, _ answer: (Request) -> PushMachine.Answer? = { _ in nil })
        throws
    {
        var underWay: [RequestQueue<Request>.Numbered] = []
        while true {
            try machine.goOn()
            reports += machine.drainReports()
            while let next = machine.next(atOnce: limit) {
                log.append(Self.words(next.request))
                underWay.append(next)
            }
            #expect(underWay.count <= min(limit, 3))
            if underWay.isEmpty {
                if machine.isCaughtUp { return }
                continue
            }
            let next = underWay.removeFirst()
            try machine.receive(answer(next.request) ?? Self.success(next.request), to: next.number)
        }
    }

    mutating func next(atOnce limit: Int = 8) throws -> RequestQueue<Request>.Numbered {
        let next = machine.next(atOnce: limit)
        return try #require(next)
    }

    /// Whether there is no further request now.
    func isIdle(atOnce limit: Int) -> Bool {
        var machine = machine
        return machine.next(atOnce: limit) == nil
    }

    private static func words(_ request: Request) -> String {
        switch request {
        case .differences(let leaves): "differences \(leaves.map(\.id).joined(separator: " "))"
        case .bulk(let leaves): "bulk \(leaves.map(\.documentID).joined(separator: " "))"
        case .parts(let leaf): "parts \(leaf.documentID)"
        case .inline(let leaf, _): "inline \(leaf.documentID)"
        case .permission: "permission"
        case .presence: "presence"
        }
    }

    static func success(_ request: Request) -> PushMachine.Answer {
        switch request {
        case .differences(let leaves):
            return .differences(
                leaves.reduce(into: [:]) { all, leaf in
                    var missing = MissingRevisions()
                    missing.missing = Set(leaf.revisions.map { ExactText($0.text) })
                    all[ExactText(leaf.id)] = .success(missing)
                }
            )
        case .bulk, .parts, .inline: return .written([])
        case .permission: return .permission(nil)
        case .presence: return .presence(true)
        }
    }

    /// The documents that were pushed, and those that could not be.
    var pushed: [String] { errors(in: reports).filter { $0.value == nil }.keys.sorted() }
    var failed: [String] { errors(in: reports).filter { $0.value != nil }.keys.sorted() }
}
