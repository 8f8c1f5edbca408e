package import LoveseatModel

/// An app's sync function: it says into which channels a document goes, what access it grants, and whether its author may
/// save it.
package typealias SyncFunction = @Sendable (inout SyncCall) throws -> Void

/// Why a sync function refuses a document.
package enum SyncRefusal: Error, Hashable, Sendable {
    /// `throw({forbidden: …})`, or one of the `require…` functions.
    case forbidden(String)
    /// The function itself failed.
    case exception
}

/// One call of a sync function.
package struct SyncCall: Sendable {
    /// The document as it is to be saved, with `_id`, and `_deleted` for a tombstone.
    package let document: JSONObject
    /// The document as it is; nil if there is none.
    package let oldDocument: JSONObject?
    /// The author; nil for an administrator, who passes every `require…`.
    package let user: String?
    /// The channels that the author has in this collection.
    let userChannels: Set<String>
    /// The roles that the author has.
    let userRoles: Set<String>

    /// The channels that the document goes into.
    package private(set) var channels: Set<String> = []
    /// The channels that the document grants, by user or `role:` and role.
    package private(set) var access: [String: Set<String>] = [:]
    /// The roles that the document grants, by user.
    package private(set) var roles: [String: Set<String>] = [:]

    init(
        document: JSONObject,
        oldDocument: JSONObject?,
        user: String?,
        userChannels: Set<String>,
        userRoles: Set<String>
    ) {
        (self.document, self.oldDocument, self.user) = (document, oldDocument, user)
        (self.userChannels, self.userRoles) = (userChannels, userRoles)
    }

    /// Puts the document into a channel, or each of a list.
    package mutating func channel(_ names: JSONValue?) { channels.formUnion(Self.names(names)) }

    /// Grants users, or roles written `role:name`, access to channels.
    package mutating func access(_ users: JSONValue?, _ channels: JSONValue?) {
        for user in Self.names(users) { access[user, default: []].formUnion(Self.names(channels)) }
    }

    /// Grants users roles, which are written `role:name`.
    package mutating func role(_ users: JSONValue?, _ names: JSONValue?) {
        let granted = Self.names(names).filter { $0.hasPrefix("role:") }.map { String($0.dropFirst(5)) }
        for user in Self.names(users) { roles[user, default: []].formUnion(granted) }
    }

    /// Refuses any author but these users.
    package func requireUser(_ users: JSONValue?) throws {
        if let user, !Self.names(users).contains(user) { throw SyncRefusal.forbidden("sg wrong user") }
    }

    /// Refuses an author without one of these roles.
    package func requireRole(_ names: JSONValue?) throws {
        if user == nil || !userRoles.isDisjoint(with: Self.names(names)) { return }
        throw SyncRefusal.forbidden("sg missing role")
    }

    /// Refuses an author without access to one of these channels.
    package func requireAccess(_ names: JSONValue?) throws {
        if user == nil || userChannels.contains("*") || !userChannels.isDisjoint(with: Self.names(names)) {
            return
        }
        throw SyncRefusal.forbidden("sg missing channel access")
    }

    /// Refuses everybody but administrators.
    package func requireAdmin() throws {
        if user != nil { throw SyncRefusal.forbidden("sg admin required") }
    }

    private static func names(_ value: JSONValue?) -> [String] {
        value?.string.map { [$0] } ?? value?.array?.compactMap(\.string) ?? []
    }

    /// The default for a database without a function of its own: `channel(doc.channels)`.
    package static let channelsOfDocument: SyncFunction = { $0.channel($0.document["channels"]) }

    /// The default for a named collection without a function of its own: all its documents go into a channel of its name.
    package static func channel(named name: String) -> SyncFunction { { $0.channel(.string(name)) } }
}
