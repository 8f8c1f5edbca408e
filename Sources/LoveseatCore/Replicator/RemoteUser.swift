import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// The user under whose name a remote database is used.
package struct RemoteUser: Hashable, Sendable {
    package enum Kind: String, Hashable, Sendable {
        case nobody, name, certificate
        /// The user of a session is unknown.
        case session
    }

    package let kind: Kind
    /// The user's name, or a digest of the credentials.
    package let name: String

    package init(kind: Kind, name: String) { (self.kind, self.name) = (kind, name) }

    static let nobody = RemoteUser(kind: .nobody, name: "")

    init?(_ text: String) {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let kind = Kind(rawValue: String(parts[0])) else { return nil }
        self.init(kind: kind, name: String(parts[1]))
    }

    var text: String { "\(kind.rawValue):\(name)" }

    /// The user, as a text for people.
    var description: String {
        switch kind {
        case .nobody: "nobody"
        case .name: "\"\(name)\""
        case .certificate: "the certificate \(name.prefix(8))…"
        case .session: "a session"
        }
    }

    /// Whether changes that were saved under this user may be pushed under another one without the app's consent.
    var hasNoName: Bool { kind == .nobody || kind == .session }
}

extension ReplicationSetup {
    /// Records the user of the remote.
    ///
    /// - Throws: `invalidParameter` if documents were saved while it was used under another name, were not pushed, and the
    ///   configuration does not say that they are to be pushed under this one.
    func recordUser() throws(LoveseatError) {
        if (known?.user).isExactly(user.text) { return }
        // Changes that are pushed without a name are not pushed under another user's name.
        if let other = known?.user.flatMap({ RemoteUser($0) }), !other.hasNoName, user.kind != .nobody,
            !config.adoptsOtherUsersChanges
        {
            let count = try unpushed()
            // A session that only pulls leaves this to the next one that pushes.
            if count > 0, config.replicatorType == .pull { return }
            guard count == 0 else {
                var error = LoveseatError(
                    .invalidParameter,
                    "\(count.counted("document")) changed while this database was used as \(other.description) would be pushed as \(user.description): push as \(other.description) first, or allow it"
                )
                error.remedy = .adoptingChanges
                throw error
            }
        }
        try DocumentStore.wrapping {
            try store.write(call: "replication") {
                try $0.checkpointTables.setUser(user.text, userChanges: userChanges, of: remote)
            }
        }
    }

    private func unpushed() throws(LoveseatError) -> Int {
        var pushing = config
        if pushing.replicatorType == .pull { pushing.replicatorType = .push }
        var count = 0
        for entry in config.collections {
            let pending = try PendingDocuments(pushing, entry)
            count += try DocumentStore.wrapping { try pending.all().count }
        }
        return count
    }
}
