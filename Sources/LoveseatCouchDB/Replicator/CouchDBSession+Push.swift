import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// Sends the requests of ``PushMachine``.
extension CouchDBSession {
    func push(_ lane: Lane) async throws {
        let (signals, signal) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let token = store.changes.subscribe(
            collection: lane.handle.number,
            onClose: { signal.finish() },
            { _ in signal.yield() }
        )
        defer { store.changes.unsubscribe(token) }
        var waiting = signals.makeAsyncIterator()
        let (remote, blobs) = (lane.remote, store.blobs)
        while true {
            try await run(lane.push, lane) { try await Self.send($0, to: remote, blobs) }
            guard plan.isContinuous, await waiting.next(isolation: self) != nil else {
                return try Task.checkCancellation()
            }
            try Task.checkCancellation()
            lane.push.machine.noteChange()
        }
    }

    private static func send(_ request: PushMachine.Request, to remote: RemoteDatabase, _ blobs: BlobFiles)
        async throws -> PushMachine.Answer
    {
        do {
            switch request {
            case .differences(let leaves): return .differences(try await remote.differences(leaves))
            case .bulk(let leaves):
                let ids = DocumentSet(leaves.map(\.documentID))
                return .written(try await remote.write(leaves.map(\.text.bytes), of: ids))
            case .parts(let leaf):
                let layout = try MultipartReply.related(leaf.text)
                let upload = Upload(layout, blobs: blobs)
                try await remote.write(leaf.documentID, contentType: layout.contentType, upload)
                return .written([])
            case .inline(let leaf, let text):
                let upload = Upload(text, blobs: blobs)
                try await remote.write(leaf.documentID, contentType: "application/json", upload)
                return .written([])
            case .permission: return .permission(try await remote.refusalOfWrites())
            case .presence: return .presence(await remote.answers())
            }
        } catch let failure as RemoteFailure {
            return .refused(failure)
        } catch let error as LoveseatError where [.notFound, .corruptData].contains(error.code) {
            // A blob is not here, or is damaged. No other request reads one.
            return .unreadable(error)
        }
    }
}
