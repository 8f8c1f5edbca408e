import LoveseatCore

extension BlockingThreads {
    /// The threads of all requests: their handlers read the database, and call an app's policies and filters, which may do the same. A task
    /// that serves a connection runs here, and so does everything that it calls, its answers' streams included.
    static let requests = BlockingThreads(label: "loveseat.couchdb")
}
