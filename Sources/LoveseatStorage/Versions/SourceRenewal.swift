import GRDB
package import LoveseatModel

/// Why a database goes on with another source.
package enum NewSourceReason: Hashable, Sendable {
    /// The database was not closed, and the system was started since: the last commits may be lost, and peers may have their versions.
    case powerLoss
    /// The source or the clock in the file cannot be read.
    case damage
    /// A peer has a version by this database that this database does not know: it was put back to an earlier state.
    case unknownVersion(Version, document: String)
    /// The author has a version at the end of all times.
    case lastTime
}

extension NewSourceReason: CustomStringConvertible {
    /// The event that made it necessary, for the log.
    package var description: String {
        switch self {
        case .powerLoss:
            "the database was not closed before the system was started again, so its last changes may be lost"
        case .damage: "the source or the clock of its versions is damaged"
        case .unknownVersion(let version, let document):
            "a peer has version \(version) of document \"\(document)\", which this database made and does not know, because an earlier state of it was restored"
        case .lastTime: "a version of its own has the last possible time"
        }
    }
}

/// When a database that is opened has to go on with another source (docs/decisions/0015, "One version, one content").
///
/// A later version includes the author's earlier ones, whatever it was made from. A database that has lost some of its versions would hide
/// them at every peer that has them.
enum SourceRenewal {
    /// Gives the database a new source if it may have lost versions of its own. It makes none before this was called.
    static func perform(_ writer: any DatabaseWriter, _ options: DocumentStore.Options) throws {
        let reason = try writer.unsafeReentrantWrite { try perform($0, options) }
        if let reason { options.system.onNewSource(reason) }
    }

    /// As ``perform(_:_:)-(DatabaseWriter,_)``, outside of any transaction.
    ///
    /// - Returns: why there is a new source; nil if there is none.
    static func perform(_ db: Database, _ options: DocumentStore.Options) throws -> NewSourceReason? {
        let info = try StoreVersions.entries([StoreVersions.sourceKey, OpenNote.key], in: db)
        // Most databases make no versions.
        if info[StoreVersions.sourceKey] == nil { return nil }
        let versions = try StoreVersions.load(db)
        let note = info[OpenNote.key].map { OpenNote($0) }
        let reason: NewSourceReason
        if versions == nil {
            reason = .damage
        } else if let note, note.mayHaveLost(in: options.system.bootID()) {
            reason = .powerLoss
        } else {
            return nil
        }
        try db.inTransaction {
            try replaceSource(db, options)
            return .commit
        }
        return reason
    }

    /// Gives a database that makes versions another source, in the transaction of the caller. Nothing was issued by it.
    static func replaceSource(_ db: Database, _ options: DocumentStore.Options) throws {
        // Most databases make no versions.
        if try StoreVersions.entries([StoreVersions.sourceKey], in: db).isEmpty { return }
        let source = try SourceID.new(options)
        let versions =
            try StoreVersions.load(db)?.renamed(source)
            ?? StoreVersions(VersionAuthor(source), limit: 0)
        try versions.save(in: db)
        try OpenNote.remove(in: db)
    }
}
