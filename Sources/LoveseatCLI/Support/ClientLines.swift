import Loveseat
import LoveseatCouchDB

/// Prints a line on standard error when a client of CouchDB's wire begins to replicate with `serve`, and when it has asked for nothing for
/// a while.
enum ClientLines {
    /// Prints until the task is cancelled.
    static func print(of listener: CouchDBListener) async {
        var known: [String: ReplicationTask] = [:]
        // The sleep fails when the task is cancelled.
        while (try? await Task.sleep(for: .seconds(1))) != nil {
            let clients = listener.replicationTasks.filter(\.isClient)
            let now = Dictionary(clients.map { ($0.id, $0) }) { first, _ in first }
            for (id, task) in now where known[id] == nil { Output.remark("loveseat: \(text(task))") }
            for (id, task) in known where now[id] == nil {
                Output.remark(
                    "loveseat: \(text(task)) · gone after \(task.documentsWritten.counted("document"))"
                )
            }
            known = now
        }
    }

    private static func text(_ task: ReplicationTask) -> String {
        let user = task.user.map { " \($0)" } ?? ""
        return "\(task.id)\(user) · \(task.source) to \(task.target)"
    }
}
