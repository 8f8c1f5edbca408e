import LoveseatBLIP
import LoveseatModel
import LoveseatTesting
import Testing

/// A gateway that gives versions, and the test that speaks for a client of it, message by message.
struct GatewayVersionClient {
    /// Names of version-vectors.md §13.
    static let (a, b) = ("VVebVXiW0M4XZMR/7WRPmw", "ZwCGnI/3SA40pwpwiwKHAA")
    static let (c, d) = ("y90Q1yAAs6QGig6myZrsaw", "adsxl26tN7hcxCpJyV/Qbg")
    static let a1 = "18e9f1f010000000@\(a)"
    static let b3 = "18e9f1f030000000@\(b)"
    static let c4 = "18e9f1f040000000@\(c)"
    static let d6 = "18e9f1f060000000@\(d)"
    static let tree = "Revision+Tree+Encoding"
    static let source = SourceID(high: 7, low: 7)
    /// The gateway's first versions. Its clock stands still.
    static let (g1, g2) = ("18e9f1f0f0000000@\(source.text)", "18e9f1f0f0000001@\(source.text)")

    let twin: GatewayTwin
    let session: GatewaySession
    private let counter = Counter()

    private final class Counter { var last: UInt64 = 0 }

    /// A gateway of version 3, whose documents have no versions.
    static func oldGateway() -> GatewayTwin {
        let twin = GatewayTwin()
        var database = GatewayDatabase()
        database.putUser("ana", .init(channels: ["_default": ["*"]], password: "pw"))
        twin.databases["db"] = database
        return twin
    }

    /// The gateway becomes one of version 4.
    static func upgrade(_ twin: GatewayTwin) throws {
        try twin.databases["db"]?.beginVersions(by: source) { 0x18E9_F1F0_F000_0000 }
    }

    static func newGateway() throws -> GatewayTwin {
        let twin = oldGateway()
        try upgrade(twin)
        return twin
    }

    /// Connects to a gateway.
    init(_ twin: GatewayTwin, _ protocols: [String] = ["BLIP_3+CBMobile_4"]) throws {
        self.twin = twin
        session = try twin.accept(.init(database: "db", login: ("ana", "pw"), protocols: protocols)).session
    }

    /// Asks, and returns the answer.
    func ask(_ properties: MessageProperties, _ body: String = "") throws -> Result<Message, ReplyError> {
        counter.last += 1
        let number = counter.last
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

    // MARK: Pushing

    /// Pushes a revision; returns the code of the error, or 0.
    func push(
        _ rev: String,
        _ history: String? = nil,
        _ body: String = #"{"channels":["x"]}"#,
        of id: String = "d",
        _ more: MessageProperties = [:]
    ) throws -> Int {
        var properties: MessageProperties = ["Profile": "rev", "id": id, "rev": rev, "noconflicts": "1"]
        properties["history"] = history
        for (name, value) in more.pairs { properties[name] = value }
        if case .failure(let error) = try ask(properties, body) { return error.code }
        return 0
    }

    /// Proposes revisions; returns the answer's text.
    func propose(_ list: String, namesCurrent: Bool = true) throws -> String {
        var properties: MessageProperties = ["Profile": "proposeChanges"]
        if namesCurrent { properties["conflictIncludesRev"] = "true" }
        return String(decoding: try ask(properties, list).get().body, as: UTF8.self)
    }

    // MARK: Pulling

    /// A revision, or the message that it does not come.
    struct Delivered: Hashable {
        var profile: String
        var rev: String
        var history: String?
        var replaced: String?
    }

    /// Subscribes, answers the first list with these items, and returns the names in the list with what came.
    func pull(_ items: String) throws -> (announced: [String], delivered: [Delivered]) {
        _ = try ask(["Profile": "subChanges", "sendReplacementRevs": "true"]).get()
        session.work()
        var announced: [String] = []
        for output in session.drainOutput() {
            guard case .request(let message, let tag?) = output,
                let list = try JSONElement(parsing: message.body).value.array
            else { continue }
            announced = list.compactMap { $0[2]?.string }
            session.receive(.response(tag, Message(body: Array(items.utf8))))
        }
        session.work()
        let delivered = session.drainOutput().compactMap { output -> Delivered? in
            guard case .request(let message, _) = output, let rev = message.properties["rev"] else {
                return nil
            }
            return Delivered(
                profile: message.profile,
                rev: rev,
                history: message.properties["history"],
                replaced: message.properties["replacedRev"]
            )
        }
        return (announced, delivered)
    }

    // MARK: The gateway

    /// Writes over REST; returns the ID of the revision.
    @discardableResult
    func write(_ number: Int, isDeleted: Bool = false, of id: String = "d") throws -> String {
        try Self.write(twin, number, isDeleted: isDeleted, of: id)
    }

    @discardableResult
    static func write(_ twin: GatewayTwin, _ number: Int, isDeleted: Bool = false, of id: String = "d")
        throws -> String
    {
        let current = twin.databases["db"]?.currentRevision(of: id)
        let parent = current.flatMap { $0.isDeleted ? nil : $0.text }
        let body: JSONObject = ["n": JSONValue(number)]
        return try twin.databases["db"]?.edit(id, body, isDeleted: isDeleted, parent: parent) ?? ""
    }

    /// The vector of a document.
    func vector(of id: String = "d") -> String? { twin.databases["db"]?.vector(of: id)?.text }

    /// The ID of a document's current revision in the tree.
    func treeID(of id: String = "d") -> String { twin.databases["db"]?.currentRevision(of: id)?.text ?? "" }

    /// The version that stands for a revision ID.
    static func encoded(_ id: String) -> String { RevisionID(id)?.encodedVersion?.text ?? "" }
}
