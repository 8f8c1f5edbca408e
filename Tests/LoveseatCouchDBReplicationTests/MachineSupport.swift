import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatReplication

/// The checkpoints of a database, with a log of what is asked of it.
class RecordedCheckpoints: ReplicaCheckpoints {
    var body: JSONText?
    var log: [String] = []
    var failure: LoveseatError?

    init(_ body: JSONText? = nil) { self.body = body }

    func checkpoint() throws(LoveseatError) -> StoredCheckpoint {
        var stored = StoredCheckpoint()
        stored.body = body
        return stored
    }

    func saveCheckpoint(_ body: JSONText, coversMarks: Bool) throws(LoveseatError) {
        if let failure { throw failure }
        self.body = body
        log.append("stored")
    }

    func beginCheckpoint() { log.append("begun") }
    func retractCheckpoint(_ body: JSONText) throws(LoveseatError) { log.append("retracted") }
    func believeMarks(_ trust: MarkTrust) { log.append("believed") }
    func markSynced(_ revisions: [SyncedRevision]) throws(LoveseatError) { log.append("marked") }
    func peerCheckpoint(_ id: String) throws(LoveseatError) -> PeerCheckpoint? { nil }
    func savePeerCheckpoint(_ body: JSONText, as id: String, replacing revision: Int)
        throws(LoveseatError) -> Int?
    { nil }
}

/// Parts of a remote's answers.
enum Answers {
    static func sequence(_ number: Int) -> RemoteSequence {
        RemoteSequence(JSONElement(JSONText(canonical: JSONValue(number))))
    }

    static func failure(_ status: Int, _ reason: String = "no") -> RemoteFailure {
        RemoteFailure(status: status, body: Array(#"{"error":"x","reason":"\#(reason)"}"#.utf8))
    }
}

extension RevisionID {
    static func test(_ generation: UInt32, _ suffix: String) -> RevisionID {
        RevisionID(generation: generation, digest: Array(suffix.utf8))
    }
}

/// The errors that reports name, by document.
func errors(in reports: [SessionReport]) -> [String: LoveseatError?] {
    reports.reduce(into: [:]) { errors, report in
        if case .document(let event) = report { errors[event.documentID] = .some(event.error) }
    }
}
