import LoveseatBLIP
import LoveseatModel
import LoveseatTesting
import Testing

/// Rules of the gateway's twin that no recording shows, each with its number in gateway.md.
struct GatewayTwinRuleTests {
    private let twin = GatewayTwin()

    init() {
        var database = GatewayDatabase()
        database.putUser("ana", .init(channels: ["_default": ["a"]], password: "pw"))
        database.putUser("ben", .init(channels: ["_default": ["b"]], password: "pw"))
        twin.databases["db"] = database
    }

    private func status(_ upgrade: GatewayTwin.Upgrade) -> Int {
        do throws(GatewayTwin.UpgradeRefusal) {
            _ = try twin.accept(upgrade)
            return 101
        } catch { return error.status }
    }

    private func session(of user: String) throws -> GatewaySession {
        try twin.accept(.init(database: "db", login: (user, "pw"))).session
    }

    /// Asks, and returns the answer.
    private func ask(
        _ session: GatewaySession,
        _ number: UInt64,
        _ properties: MessageProperties,
        _ body: String = ""
    ) throws -> Result<Message, ReplyError> {
        session.receive(.request(number: number, Message(properties, body: Array(body.utf8))))
        #expect(session.work(onRequest: number))
        for output in session.drainOutput() {
            switch output {
            case .reply(let message, number): return .success(message)
            case .failure(let error, number): return .failure(error)
            default: break
            }
        }
        throw ReplyError("test", 0, "there is no answer")
    }

    private func code(_ result: Result<Message, ReplyError>) -> Int {
        if case .failure(let error) = result { error.code } else { 0 }
    }

    @Test func `an upgrade is refused by database, login, origin and sub-protocol (1-5)`() {
        #expect(status(.init(database: "other", login: ("ana", "pw"))) == 401)
        #expect(status(.init(database: "db", login: ("ana", "wrong"))) == 401)
        #expect(status(.init(database: "db")) == 401)
        #expect(status(.init(database: "db", login: ("ana", "pw"), origin: "http://x")) == 403)
        #expect(status(.init(database: "db", login: ("ana", "pw"), protocols: ["BLIP_3+CBMobile_9"])) == 500)
        #expect(status(.init(database: "db", login: ("ana", "pw"))) == 101)
        twin.setOnline(false, "db")
        #expect(status(.init(database: "db", login: ("ana", "pw"))) == 503)
    }

    @Test func `a session renews itself after a tenth of its time, and the first of two cookies counts (53)`()
        throws
    {
        let id = try #require(twin.makeSession(of: "ana", in: "db", lifetime: 1_000))
        let other = try #require(twin.makeSession(of: "ben", in: "db", lifetime: 1_000))
        #expect(try twin.accept(.init(database: "db", sessions: [id])).renewedSession == nil)
        twin.now = 200
        let accepted = try twin.accept(.init(database: "db", sessions: [id, other]))
        #expect(accepted.renewedSession == id)
        #expect(accepted.session.user == "ana")
        twin.now = 1_150
        #expect(status(.init(database: "db", sessions: [id])) == 101)
        #expect(status(.init(database: "db", sessions: [other])) == 401)
        twin.databases["db"]?.putUser("ana", .init(password: "new"))
        #expect(status(.init(database: "db", sessions: [id])) == 401)
    }

    @Test func `a second subscription is refused, and any after one that was refused (31)`() throws {
        let session = try session(of: "ana")
        #expect(code(try ask(session, 1, ["Profile": "subChanges"])) == 0)
        #expect(code(try ask(session, 2, ["Profile": "subChanges"])) == 500)
        let refused = try self.session(of: "ana")
        #expect(code(try ask(refused, 1, ["Profile": "subChanges", "since": "-3"])) == 400)
        #expect(code(try ask(refused, 2, ["Profile": "subChanges", "filter": "mine"])) == 400)
        #expect(code(try ask(refused, 3, ["Profile": "subChanges"])) == 500)
    }

    @Test
    func `a deletion on a tombstone or an inner revision is refused, a new document over one is taken (55)`()
        throws
    {
        let session = try session(of: "ana")
        func push(_ number: UInt64, _ rev: String, _ history: String, deleted: Bool = false) throws -> Int {
            var properties: MessageProperties = ["Profile": "rev", "id": "x", "rev": rev, "noconflicts": "1"]
            if !history.isEmpty { properties["history"] = history }
            if deleted { properties["deleted"] = "1" }
            return code(try ask(session, number, properties, deleted ? "{}" : #"{"channels":["a"]}"#))
        }
        #expect(try push(1, "1-aa", "") == 0)
        #expect(try push(2, "1-bb", "") == 409)
        #expect(try push(3, "2-aa", "1-aa") == 0)
        #expect(try push(4, "2-dd", "1-aa", deleted: true) == 409)
        #expect(try push(5, "3-aa", "2-aa,1-aa", deleted: true) == 0)
        #expect(try push(6, "4-aa", "3-aa,2-aa", deleted: true) == 409)
        #expect(try push(7, "1-cc", "") == 0)
        #expect(try push(8, "1-aa", "") == 0, "a revision that is there is taken again")
        #expect(twin.databases["db"]?.currentRevision(of: "x")?.text == "1-cc")
    }

    @Test func `a document that the user may not see has a revision all the same (55)`() throws {
        try twin.databases["db"]?.edit("x", ["channels": ["b"]], parent: nil)
        let session = try session(of: "ana")
        let proposal: MessageProperties = ["Profile": "proposeChanges", "conflictIncludesRev": "true"]
        let answer = try ask(session, 1, proposal, #"[["x","1-aa"]]"#).get()
        #expect(String(decoding: answer.body, as: UTF8.self).contains("409"))
        let pushed: MessageProperties = ["Profile": "rev", "id": "x", "rev": "1-aa"]
        #expect(code(try ask(session, 2, pushed, "{}")) == 409)
    }

    @Test func `a backup takes the database back, and ends its connections`() throws {
        let backup = try #require(twin.databases["db"])
        try twin.databases["db"]?.edit("x", ["channels": ["a"]], parent: nil)
        var dropped: [String] = []
        twin.onDrop = { dropped.append($0) }
        twin.restore(backup, to: "db")
        #expect(dropped == ["db"])
        #expect(twin.databases["db"]?.currentRevision(of: "x") == nil)
    }

    @Test func `a script is read as far as it goes, and refused beyond`() throws {
        let script = try #require(
            SyncScript(
                """
                function(doc, old) {
                  var c = doc._deleted && old ? old.channels : doc.channels;
                  if (c && c.indexOf("r") >= 0) { requireAccess("r"); } else if (!c) throw({forbidden: 'none'});
                  channel(c); // and that is all
                }
                """
            )
        )
        twin.databases["db"]?.setSyncFunction(script.syncFunction)
        let pushed: MessageProperties = ["Profile": "rev", "id": "x", "rev": "1-aa"]
        let session = try session(of: "ana")
        #expect(code(try ask(session, 1, pushed, #"{"channels":["a"]}"#)) == 0)
        let other: MessageProperties = ["Profile": "rev", "id": "y", "rev": "1-aa"]
        #expect(code(try ask(session, 2, other, #"{"channels":["r"]}"#)) == 403)
        #expect(code(try ask(session, 3, other, "{}")) == 403)
        #expect(SyncScript("function(doc) { for (;;) {} }") == nil)
    }
}
