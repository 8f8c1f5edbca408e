import Logging
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import NIOConcurrencyHelpers

/// Logs the documents that a listener could not replicate over one connection, or stored without some of their properties.
///
/// Each document is logged once, and at most 100 of them, because a peer may send any number.
final class PeerDocumentLog: Sendable {
    private static let maximumDocuments = 100
    /// The maximum length of a list of names, in characters.
    private static let maximumNames = 200

    private let connection: String
    private let logged = NIOLockedValueBox<DocumentSet>([])

    /// `connection`: the database and the peer, for people.
    init(_ connection: String) { self.connection = connection }

    func note(_ report: ReplicationReport) {
        switch report {
        case .document(let event):
            // Most documents are replicated without an error.
            guard let error = event.error else { return }
            let what = event.isPush ? "cannot be sent" : "is not stored"
            log(event.documentID, .notice, "\(what): \(error.message) (\(error.code))")
        case .propertiesLeftOut(_, let id, let names):
            let list = names.joined(separator: ", ").prefix(Self.maximumNames)
            log(id, .warning, "is stored without \(list): names that begin with _ belong to replication")
        case .activity, .blob, .checkpointNotSaved, .failure: break
        }
    }

    private func log(_ id: String, _ level: Logger.Level, _ text: String) {
        let count = logged.withLockedValue { logged -> Int? in
            logged.count <= Self.maximumDocuments && logged.insert(id) ? logged.count : nil
        }
        // The document was logged already, or too many were.
        guard let count else { return }
        LogDomain.listener.log(
            level,
            count <= Self.maximumDocuments
                ? "\(connection): document \"\(id)\" \(text)"
                : "\(connection): problems with more than \(Self.maximumDocuments) documents, of which no more are logged"
        )
    }
}
