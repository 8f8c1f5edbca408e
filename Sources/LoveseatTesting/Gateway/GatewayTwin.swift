import LoveseatBLIP
package import LoveseatBLIPReplication
import LoveseatModel

/// A Sync Gateway made of what was observed of one (gateway.md), without a clock, a disk or a network.
///
/// It holds databases with users, and connections to them. Everything that happens to it is a call: an upgrade request,
/// an administrator's or a user's REST request, a message. Its answers are those of Sync Gateway 3.3.7 and 4.1.1, between
/// which a `CBMobile_3` client sees no difference; recordings of both prove it (GatewayTwinTests). A database that gives versions speaks
/// `CBMobile_4` too, as 4.1.1 does. Its messages there are those of version-vectors.md §15, which
/// no recording shows.
package final class GatewayTwin {
    /// A request for a connection.
    package struct Upgrade: Sendable {
        package var database: String
        /// Name and password of the `Authorization` header.
        package var login: (name: String, password: String)?
        /// The sessions in the `Cookie` header, in its order.
        package var sessions: [String]
        package var origin: String?
        /// The sub-protocols that the client offers, in its order.
        package var protocols: [String]

        package init(
            database: String,
            login: (name: String, password: String)? = nil,
            sessions: [String] = [],
            origin: String? = nil,
            protocols: [String] = ReplicationProtocol.trees.map(\.rawValue)
        ) {
            (self.database, self.login, self.sessions) = (database, login, sessions)
            (self.origin, self.protocols) = (origin, protocols)
        }
    }

    /// The answer to an upgrade that is not accepted.
    package struct UpgradeRefusal: Error, Hashable, Sendable {
        package let status: Int
        package let reason: String
        /// Whether the answer carries `WWW-Authenticate`.
        package var namesRealm = false
    }

    /// An accepted connection.
    package struct Accepted {
        package let session: GatewaySession
        package let negotiated: ReplicationProtocol
        /// The session that a `Set-Cookie` renews; nil for none.
        package let renewedSession: String?
    }

    /// A login that a cookie stands for.
    struct Login {
        let database: String
        let user: String
        let start: Int
        var lifetime: Int
        /// The password that was valid when it began; a session ends with it.
        let password: String?
    }

    package var databases: [String: GatewayDatabase]
    /// Seconds, for the renewal of sessions.
    package var now = 0
    private var logins: [String: Login] = [:]
    private var generator: SeededGenerator
    private var sessions: [String: [WeakSession]] = [:]
    /// Called with a database's name when it drops all its connections, without a close frame (gateway.md 16).
    package var onDrop: (String) -> Void = { _ in }

    private struct WeakSession { weak var session: GatewaySession? }

    /// `seed`: for the order of properties and of work.
    package init(_ databases: [String: GatewayDatabase] = [:], seed: UInt64 = 0) {
        self.databases = databases
        generator = SeededGenerator(seed: seed)
    }

    // MARK: Connections

    /// Accepts a connection, or says why not (gateway.md 1–5, 53).
    package func accept(_ upgrade: Upgrade) throws(UpgradeRefusal) -> Accepted {
        guard let database = databases[upgrade.database] else {
            throw UpgradeRefusal(
                status: 401,
                reason: upgrade.login == nil ? "Login required" : "Invalid login"
            )
        }
        guard database.isOnline else {
            throw UpgradeRefusal(status: 503, reason: "DB is currently under maintenance")
        }
        let (user, renewed) = try authenticate(upgrade, database)
        if let origin = upgrade.origin {
            let reason = "request Origin \"\(origin)\" is not authorized for Host"
            throw UpgradeRefusal(status: 403, reason: reason)
        }
        sessions[upgrade.database, default: []].removeAll { $0.session == nil }
        if let maximum = database.options.maximumReplications,
            sessions[upgrade.database, default: []].count >= maximum
        {
            throw UpgradeRefusal(status: 503, reason: "Replication limit exceeded. Try again later.")
        }
        let known = (database.versions == nil ? [] : [.mobile4]) + ReplicationProtocol.trees
        let offered = upgrade.protocols.lazy.compactMap(ReplicationProtocol.init)
        guard let negotiated = offered.first(where: known.contains) else {
            let names = known.map(\.rawValue).joined(separator: ",")
            throw UpgradeRefusal(status: 500, reason: "I only speak \(names) protocols")
        }
        let session = GatewaySession(
            self,
            database: upgrade.database,
            user: user,
            negotiated: negotiated,
            seed: generator.next()
        )
        sessions[upgrade.database, default: []].append(WeakSession(session: session))
        return Accepted(session: session, negotiated: negotiated, renewedSession: renewed)
    }

    /// The header is checked before any cookie. Of several cookies, only the first one counts.
    private func authenticate(_ upgrade: Upgrade, _ database: GatewayDatabase) throws(UpgradeRefusal) -> (
        user: String, renewed: String?
    ) {
        if let (name, password) = upgrade.login {
            guard let user = database.users[name], !user.isDeleted, !user.isDisabled,
                user.password == password
            else { throw UpgradeRefusal(status: 401, reason: "Invalid login", namesRealm: true) }
            return (name, nil)
        }
        guard let id = upgrade.sessions.first else {
            throw UpgradeRefusal(status: 401, reason: "Login required", namesRealm: true)
        }
        guard let login = logins[id], login.database == upgrade.database,
            now < login.start + login.lifetime
        else { throw UpgradeRefusal(status: 401, reason: "Session Invalid") }
        guard let user = database.users[login.user], !user.isDeleted, !user.isDisabled,
            user.password == login.password
        else { throw UpgradeRefusal(status: 401, reason: "Session no longer valid for user") }
        // Once a tenth of its time is over, it begins anew.
        guard (now - login.start) * 10 > login.lifetime else { return (login.user, nil) }
        logins[id] = Login(
            database: login.database,
            user: login.user,
            start: now,
            lifetime: login.lifetime,
            password: login.password
        )
        return (login.user, id)
    }

    /// Makes a session of a user; nil if there is no such user.
    ///
    /// `lifetime`: in seconds; a day unless said.
    package func makeSession(of user: String, in database: String, lifetime: Int = 86_400) -> String? {
        guard let principal = databases[database]?.users[user], !principal.isDeleted else { return nil }
        let id = generator.bytes(20).hexadecimalText
        logins[id] = Login(
            database: database,
            user: user,
            start: now,
            lifetime: lifetime,
            password: principal.password
        )
        return id
    }

    /// Ends a session, as a logout does.
    package func endSession(_ id: String) { logins[id] = nil }

    // MARK: Disturbances

    /// Takes a database off or back on line. Its connections end without a close frame.
    package func setOnline(_ isOnline: Bool, _ database: String) {
        databases[database]?.setOnline(isOnline)
        if !isOnline { drop(database) }
    }

    /// The process ends and starts again: connections end without a close frame, and caches are empty.
    package func restart() {
        for name in databases.keys.sorted() {
            databases[name]?.forgetCache()
            drop(name)
        }
    }

    /// Puts a backup of a database in its place: a value that ``databases`` had before.
    package func restore(_ backup: GatewayDatabase, to database: String) {
        databases[database] = backup
        drop(database)
    }

    /// Changes the configuration of a database, which ends its connections.
    package func reconfigure(_ database: String, _ change: (inout GatewayDatabase) -> Void) {
        if var changed = databases[database] {
            change(&changed)
            databases[database] = changed
        }
        drop(database)
    }

    private func drop(_ database: String) {
        sessions[database] = nil
        onDrop(database)
    }
}
