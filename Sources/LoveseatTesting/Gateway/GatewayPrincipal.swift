import LoveseatModel

/// A user or a role.
struct GatewayPrincipal: Sendable {
    /// The channels that an administrator gave, by collection, with the sequence since when.
    var channels: [String: [String: Int]] = [:]
    /// The roles that an administrator gave, with the sequence since when.
    var roles: [String: Int] = [:]
    /// When the user had channels that are lost now, by collection and channel.
    var history: [String: [String: [GatewayDatabase.Period]]] = [:]
    /// The user's channels when they were worked out last, by collection.
    var known: [String: [String: Int]] = [:]
    /// The first sequence that changed something about them since.
    var invalidatedAt: Int?
    var password: String?
    var isDisabled = false
    var isDeleted = false
}

extension GatewayDatabase {
    /// The settings that an administrator writes for a user or role. A setting of nil stays as it is.
    package struct PrincipalSettings: Sendable {
        /// Channels by collection (`scope.collection`).
        package var channels: [String: Set<String>]
        package var roles: Set<String>?
        package var password: String?
        package var isDisabled: Bool?

        package init(
            channels: [String: Set<String>] = [:],
            roles: Set<String>? = nil,
            password: String? = nil,
            isDisabled: Bool? = nil
        ) {
            self.channels = Dictionary(
                uniqueKeysWithValues: channels.map { (GatewayDatabase.keyspace($0.key), $0.value) }
            )
            (self.roles, self.password, self.isDisabled) = (roles, password, isDisabled)
        }
    }

    /// Makes or changes a user; returns whether it was made.
    @discardableResult
    package mutating func putUser(_ name: String, _ settings: PrincipalSettings) -> Bool {
        let isNew = users[name]?.isDeleted ?? true
        if !isNew, let old = users[name], !changesAccess(old, settings) {
            users[name]?.password = settings.password ?? old.password
            users[name]?.isDisabled = settings.isDisabled ?? old.isDisabled
            return false
        }
        refreshAccess(of: name)
        lastSequence += 1
        var user = isNew ? GatewayPrincipal() : users[name] ?? GatewayPrincipal()
        user.history = users[name]?.history ?? [:]
        user.known = users[name]?.known ?? [:]
        apply(settings, to: &user)
        user.invalidatedAt = lastSequence
        users[name] = user
        refreshAccess(of: name)
        return isNew
    }

    /// Makes or changes a role; returns whether it was made.
    @discardableResult
    package mutating func putRole(_ name: String, _ settings: PrincipalSettings) -> Bool {
        let isNew = roles[name]?.isDeleted ?? true
        if !isNew, let old = roles[name], !changesAccess(old, settings) { return false }
        let before = accessOfAll()
        lastSequence += 1
        var role = isNew ? GatewayPrincipal() : roles[name] ?? GatewayPrincipal()
        apply(settings, to: &role)
        roles[name] = role
        recordLosses(since: before)
        return isNew
    }

    /// Removes a user. The user's open connections go on (gateway.md 41).
    package mutating func deleteUser(_ name: String) {
        // An administrator may delete a user that does not exist.
        guard users[name]?.isDeleted == false else { return }
        users[name]?.isDeleted = true
    }

    /// Removes a role, and the access that it gave.
    package mutating func deleteRole(_ name: String) {
        // An administrator may delete a role that does not exist.
        guard roles[name]?.isDeleted == false else { return }
        let before = accessOfAll()
        lastSequence += 1
        roles[name]?.isDeleted = true
        recordLosses(since: before)
    }

    private func changesAccess(_ old: GatewayPrincipal, _ settings: PrincipalSettings) -> Bool {
        let channels = settings.channels.contains { path, wanted in
            keyspaces[path] != nil && wanted != Set((old.channels[path] ?? [:]).keys)
        }
        return channels || (settings.roles.map { $0 != Set(old.roles.keys) } ?? false)
    }

    private func apply(_ settings: PrincipalSettings, to principal: inout GatewayPrincipal) {
        func merged(_ old: [String: Int], _ wanted: Set<String>) -> [String: Int] {
            Dictionary(uniqueKeysWithValues: wanted.map { ($0, old[$0] ?? lastSequence) })
        }
        for (path, wanted) in settings.channels where keyspaces[path] != nil {
            principal.channels[path] = merged(principal.channels[path] ?? [:], wanted)
        }
        if let wanted = settings.roles { principal.roles = merged(principal.roles, wanted) }
        principal.password = settings.password ?? principal.password
        principal.isDisabled = settings.isDisabled ?? principal.isDisabled
    }

    // MARK: Access

    /// The channels of a user in a collection, with the sequence since when.
    func channels(of user: String, in keyspace: String) -> [String: Int] {
        guard let principal = users[user] else { return [:] }
        var channels = ["!": 1]
        func add(_ name: String, _ since: Int) { channels[name] = min(channels[name] ?? .max, since) }
        for (name, since) in principal.channels[keyspace] ?? [:] { add(name, since) }
        for (name, since) in granted(to: user, in: keyspace) { add(name, since) }
        for (role, roleSince) in rolesOf(user) {
            for (name, since) in roles[role]?.channels[keyspace] ?? [:] { add(name, max(since, roleSince)) }
            for (name, since) in granted(to: "role:\(role)", in: keyspace) {
                add(name, max(since, roleSince))
            }
        }
        return channels
    }

    /// The roles of a user, with the sequence since when.
    func rolesOf(_ user: String) -> [String: Int] {
        var found = users[user]?.roles ?? [:]
        for keyspace in keyspaces.values {
            for document in keyspace.documents.values {
                for (role, since) in document.grantedRoles[user] ?? [:] {
                    found[role] = min(found[role] ?? .max, since)
                }
            }
        }
        return found.filter { roles[$0.key]?.isDeleted == false }
    }

    private func granted(to name: String, in keyspace: String) -> [String: Int] {
        var found: [String: Int] = [:]
        for (_, document) in keyspaces[keyspace]?.documents ?? [:] {
            for (channel, since) in document.grantedChannels[name] ?? [:] {
                found[channel] = min(found[channel] ?? .max, since)
            }
        }
        return found
    }

    typealias Access = [String: [String: [String: Int]]]

    func accessOfAll() -> Access {
        var access: Access = [:]
        for user in users.keys {
            for keyspace in keyspaces.keys {
                access[user, default: [:]][keyspace] = channels(of: user, in: keyspace)
            }
        }
        return access
    }

    /// Documents changed the access of users. It is worked out when they come next.
    mutating func noteChangedAccess(since before: Access) {
        let after = accessOfAll()
        for (user, old) in before where after[user] != old && users[user]?.invalidatedAt == nil {
            users[user]?.invalidatedAt = lastSequence
        }
    }

    /// Works out the access of a user, and remembers what was lost, as a gateway does when the user comes.
    mutating func refreshAccess(of name: String) {
        // The user is about to be created, or is not in the backup that the gateway was put back to.
        guard var user = users[name] else { return }
        for keyspace in keyspaces.keys {
            let now = channels(of: name, in: keyspace)
            for (channel, since) in user.known[keyspace] ?? [:] where now[channel] == nil {
                user.history[keyspace, default: [:]][channel, default: []]
                    .append(Period(start: since, end: user.invalidatedAt ?? lastSequence))
            }
            user.known[keyspace] = now
        }
        user.invalidatedAt = nil
        users[name] = user
    }

    /// An administrator changed a role: the losses of its users are remembered at once.
    private mutating func recordLosses(since before: Access) {
        for (name, old) in before {
            for (keyspace, channels) in old {
                let now = self.channels(of: name, in: keyspace)
                for (channel, since) in channels where now[channel] == nil {
                    users[name]?.history[keyspace, default: [:]][channel, default: []]
                        .append(Period(start: since, end: lastSequence))
                    users[name]?.known[keyspace]?[channel] = nil
                }
            }
        }
    }
}
