private import Foundation
import LoveseatBLIP
package import LoveseatModel

extension GatewayTwin {
    /// A REST request that changes something.
    package struct RESTRequest: Sendable {
        /// The user; nil for the admin API.
        package var user: String?
        package var method: String
        /// The path with its query.
        package var path: String
        package var body: JSONValue?

        package init(by user: String? = nil, _ method: String, _ path: String, _ body: JSONValue? = nil) {
            (self.user, self.method, self.path, self.body) = (user, method, path, body)
        }
    }

    /// Its answer.
    package struct RESTAnswer: Hashable, Sendable {
        package var status: Int
        package var body: JSONValue?

        init(_ status: Int, _ body: JSONValue? = nil) { (self.status, self.body) = (status, body) }
        init(_ error: ReplyError) { self.init(error.code, ["reason": .string(error.text)]) }
    }

    /// Does what a REST request says (gateway-rest.md 3, 10). `functions`: the sync functions, by the text that a database's
    /// configuration has.
    package func perform(_ request: RESTRequest, functions: (String) -> SyncFunction? = { _ in nil })
        -> RESTAnswer
    {
        let parts = request.path.split(separator: "?", maxSplits: 1).map(String.init)
        let segments = (parts.first ?? "").split(separator: "/", omittingEmptySubsequences: false)
            .dropFirst().map { $0.removingPercentEncoding ?? String($0) }
        guard let address = segments.first, !address.isEmpty else { return RESTAnswer(404) }
        let names = address.split(separator: ".", maxSplits: 1).map(String.init)
        let name = names[0]
        let path = names.count > 1 ? names[1] : "_default"
        let body = request.body ?? [:]
        if segments.count == 1 || segments[1].isEmpty {
            guard request.method == "PUT", request.user == nil else { return RESTAnswer(405) }
            guard databases[name] == nil || databases[name]?.lastSequence == 0 else { return RESTAnswer(412) }
            databases[name] = GatewayDatabase(configuration: body, functions: functions)
            return RESTAnswer(201)
        }
        guard databases[name] != nil else { return RESTAnswer(401) }
        let target = segments.count > 2 ? segments[2] : ""
        switch segments[1] {
        case "_user", "_role", "_purge", "_local", "_config", "_online", "_offline", "_session":
            guard request.user == nil else { return RESTAnswer(403) }
            return administer(name, path, segments[1], target, request, functions)
        case "_bulk_docs":
            let rows = (body["docs"]?.array ?? []).map { document -> JSONValue in
                let id = document["_id"]?.string ?? ""
                return write(name, path, id, document, by: request.user).body ?? .null
            }
            return RESTAnswer(201, .array(rows))
        default:
            // Attachments by a path of their own are not a part of the twin.
            guard request.method == "PUT" || request.method == "DELETE", target.isEmpty else {
                return RESTAnswer(405)
            }
            var document = body
            if request.method == "DELETE" {
                let query = (parts.count > 1 ? parts[1] : "").split(separator: "&")
                document["_deleted"] = true
                document["_rev"] = query.first { $0.hasPrefix("rev=") }.map {
                    .string(String($0.dropFirst(4)))
                }
            }
            let answer = write(name, path, segments[1], document, by: request.user)
            let isDone = answer.status == 201
            return RESTAnswer(request.method == "DELETE" && isDone ? 200 : answer.status, answer.body)
        }
    }

    private func write(_ name: String, _ path: String, _ id: String, _ document: JSONValue, by user: String?)
        -> RESTAnswer
    {
        do {
            let revision = try databases[name]?.edit(
                id,
                document.object ?? [:],
                isDeleted: document["_deleted"] == true,
                parent: document["_rev"]?.string,
                by: user,
                in: path
            )
            return RESTAnswer(201, ["id": .string(id), "ok": true, "rev": .string(revision ?? "")])
        } catch { return RESTAnswer(error) }
    }

    private func administer(
        _ name: String,
        _ path: String,
        _ what: String,
        _ target: String,
        _ request: RESTRequest,
        _ functions: (String) -> SyncFunction?
    ) -> RESTAnswer {
        let body = request.body ?? [:]
        switch (what, request.method) {
        case ("_user", "DELETE"): databases[name]?.deleteUser(target)
        case ("_role", "DELETE"): databases[name]?.deleteRole(target)
        case ("_user", _):
            let settings = GatewayDatabase.PrincipalSettings(configuration: body)
            return RESTAnswer(databases[name]?.putUser(target, settings) == true ? 201 : 200)
        case ("_role", _):
            let settings = GatewayDatabase.PrincipalSettings(configuration: body)
            return RESTAnswer(databases[name]?.putRole(target, settings) == true ? 201 : 200)
        case ("_purge", _):
            var purged: JSONValue = [:]
            for (id, _) in body.object ?? [:] where databases[name]?.purge(id, in: path) == true {
                purged[id] = ["*"]
            }
            return RESTAnswer(200, ["purged": purged])
        case ("_local", let method):
            // Paths are decoded twice (gateway-rest.md 3.3).
            let id = target.removingPercentEncoding ?? target
            let client = id.hasPrefix("checkpoint/") ? String(id.dropFirst(11)) : id
            return writeLocal(name, path, client, method == "DELETE" ? nil : body.object ?? [:])
        case ("_config", _):
            guard let text = body["sync"]?.string, let function = functions(text) else {
                return RESTAnswer(400)
            }
            reconfigure(name) { $0.setSyncFunction(function, in: path) }
            return RESTAnswer(201)
        case ("_offline", _): setOnline(false, name)
        case ("_online", _): setOnline(true, name)
        case ("_session", _):
            let lifetime = body["ttl"]?.int ?? 86_400
            guard let id = makeSession(of: body["name"]?.string ?? "", in: name, lifetime: lifetime) else {
                return RESTAnswer(404)
            }
            let cookie = databases[name]?.options.sessionCookie ?? ""
            return RESTAnswer(200, ["session_id": .string(id), "cookie_name": .string(cookie)])
        default: return RESTAnswer(405)
        }
        return RESTAnswer(200)
    }

    private func writeLocal(_ name: String, _ path: String, _ client: String, _ body: JSONObject?)
        -> RESTAnswer
    {
        guard let body else {
            databases[name]?.removeCheckpoint(client, in: path)
            return RESTAnswer(200)
        }
        do {
            let revision = try databases[name]?.saveCheckpoint(
                body,
                client: client,
                revision: body["_rev"]?.string ?? "",
                in: GatewayDatabase.keyspace(path)
            )
            return RESTAnswer(201, ["ok": true, "rev": .string(revision ?? "")])
        } catch { return RESTAnswer(error) }
    }
}

extension GatewayDatabase {
    /// A database as an administrator's configuration has it. Passwords are `pw-` and the name unless it says others.
    package init(configuration: JSONValue, functions: (String) -> SyncFunction?) {
        var options = Options()
        options.revisionDepth = configuration["revs_limit"]?.int ?? options.revisionDepth
        options.keepsOldBodies = (configuration["old_rev_expiry_seconds"]?.int ?? 300) >= 60
        options.maximumReplications = configuration["max_concurrent_replications"]?.int
        options.sessionCookie = configuration["session_cookie_name"]?.string ?? options.sessionCookie
        func function(_ text: JSONValue?, _ fallback: @escaping SyncFunction) -> SyncFunction {
            text?.string.flatMap(functions) ?? fallback
        }
        if let scopes = configuration["scopes"]?.object {
            var collections: [String: SyncFunction] = [:]
            for (scope, settings) in scopes {
                for (name, collection) in settings["collections"]?.object ?? [:] {
                    let fallback =
                        name == "_default" ? SyncCall.channelsOfDocument : SyncCall.channel(named: name)
                    collections["\(scope).\(name)"] = function(collection["sync"], fallback)
                }
            }
            self.init(collections: collections, options: options)
        } else {
            let sync = function(configuration["sync"], SyncCall.channelsOfDocument)
            self.init(sync: sync, options: options)
        }
        for (name, settings) in (configuration["roles"]?.object ?? [:]).sorted(by: { $0.key < $1.key }) {
            putRole(name, PrincipalSettings(configuration: settings))
        }
        for (name, settings) in (configuration["users"]?.object ?? [:]).sorted(by: { $0.key < $1.key }) {
            var settings = PrincipalSettings(configuration: settings)
            settings.password = settings.password ?? "pw-\(name)"
            putUser(name, settings)
        }
    }
}

extension GatewayDatabase.PrincipalSettings {
    /// Reads the settings in the body of a REST request about a user or role.
    package init(configuration: JSONValue) {
        func names(_ value: JSONValue?) -> Set<String>? {
            (value?.array?.compactMap(\.string)).map { Set($0) }
        }
        var channels: [String: Set<String>] = [:]
        if let wanted = names(configuration["admin_channels"]) { channels["_default"] = wanted }
        for (scope, collections) in configuration["collection_access"]?.object ?? [:] {
            for (name, access) in collections.object ?? [:] {
                channels["\(scope).\(name)"] = names(access["admin_channels"]) ?? []
            }
        }
        self.init(
            channels: channels,
            roles: names(configuration["admin_roles"]),
            password: configuration["password"]?.string,
            isDisabled: configuration["disabled"]?.bool
        )
    }
}
