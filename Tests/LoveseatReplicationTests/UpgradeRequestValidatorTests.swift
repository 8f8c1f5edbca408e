import LoveseatBLIPReplication
import LoveseatNetwork
import NIOHTTP1
import Testing

/// `UpgradeRequestValidator`: checks the request with which a client asks for a WebSocket.
struct UpgradeRequestValidatorTests {
    private static let key = "dGhlIHNhbXBsZSBub25jZQ=="
    private let validator = UpgradeRequestValidator(databaseName: "my db")

    private func request(
        _ uri: String = "/my%20db/_blipsync",
        _ method: HTTPMethod = .GET,
        _ change: (inout HTTPHeaders) -> Void = { _ in }
    ) -> HTTPRequestHead {
        var headers: HTTPHeaders = [
            "Upgrade": "websocket", "Connection": "keep-alive, Upgrade", "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": Self.key,
            "Sec-WebSocket-Protocol": "chat, BLIP_3+CBMobile_2, BLIP_3+CBMobile_3",
        ]
        change(&headers)
        return HTTPRequestHead(version: .http1_1, method: method, uri: uri, headers: headers)
    }

    private func refusal(_ request: HTTPRequestHead) -> HTTPRefusal? {
        #expect(throws: HTTPRefusal.self) { try validator.validate(request) }
    }

    @Test(arguments: [
        "/my%20db/_blipsync", "/my%20db/_blipsync?x=1", "/my%20db/_blipsync/", "/%6Dy%20db/_blipsync",
    ])
    func `the validator accepts a WebSocket with the first protocol that both sides have`(_ uri: String)
        throws
    {
        #expect(
            try validator.validate(request(uri)) == .webSocket(.init(negotiated: .mobile2, key: Self.key))
        )
    }

    @Test func `the validator accepts the question whether the database exists`() throws {
        #expect(try validator.validate(request("/my%20db")) == .database)
        #expect(try validator.validate(request("/my%20db/") { $0 = [:] }) == .database)
    }

    @Test(arguments: [
        "/", "/other", "/other/_blipsync", "/my%20db/_changes", "/my%20db/_blipsync/x", "/my+db", "*",
    ])
    func `the validator answers every other path with 404`(_ uri: String) {
        #expect(refusal(request(uri))?.status == .notFound)
    }

    @Test func `the validator answers a request that does not upgrade with 426 and what it upgrades to`() {
        for request in [
            request(method: .POST), request { $0.remove(name: "Upgrade") },
            request { $0.replaceOrAdd(name: "Connection", value: "close") },
            request { $0.replaceOrAdd(name: "Upgrade", value: "h2c") },
        ] {
            let refusal = refusal(request)
            #expect(refusal?.status == .upgradeRequired)
            #expect(refusal?.headers == [["Upgrade", "websocket"], ["Connection", "Upgrade"]])
        }
    }

    @Test(arguments: ["8", "14", "", nil])
    func `the validator answers another version of WebSockets with 426 and its own`(_ version: String?) {
        let refusal = refusal(
            request {
                $0.remove(name: "Sec-WebSocket-Version")
                if let version { $0.add(name: "Sec-WebSocket-Version", value: version) }
            }
        )
        #expect(refusal?.status == .upgradeRequired)
        #expect(refusal?.headers.contains(["Sec-WebSocket-Version", "13"]) == true)
    }

    @Test(
        arguments: [
            ("Sec-WebSocket-Key", nil), ("Sec-WebSocket-Key", "short"),
            ("Sec-WebSocket-Key", "no base64 at all!!!!!!!!"),
            ("Sec-WebSocket-Protocol", nil), ("Sec-WebSocket-Protocol", "chat, BLIP_2"),
        ]
    )
    func `the validator answers a key or protocols that it cannot use with 400`(
        _ name: String,
        _ value: String?
    ) {
        let refusal = refusal(
            request {
                $0.remove(name: name)
                if let value { $0.add(name: name, value: value) }
            }
        )
        #expect(refusal?.status == .badRequest)
    }

    @Test(
        arguments: [
            ("BLIP_3+CBMobile_4,BLIP_3+CBMobile_3", nil, .mobile4),
            ("BLIP_3+CBMobile_4,BLIP_3+CBMobile_3", "trees", .mobile3),
            ("BLIP_3+CBMobile_3, BLIP_3+CBMobile_4", nil, .mobile3), ("BLIP_3+CBMobile_4", nil, .mobile4),
            ("BLIP_3+CBMobile_4", "trees", .mobile4),
        ] as [(String, String?, ReplicationProtocol)]
    )
    func `the validator accepts the first form that a client offers, and trees between two Loveseats`(
        _ offers: String,
        _ loveseat: String?,
        _ negotiated: ReplicationProtocol
    ) throws {
        let request = request {
            $0.replaceOrAdd(name: "Sec-WebSocket-Protocol", value: offers)
            if let loveseat { $0.add(name: "Loveseat", value: loveseat) }
        }
        #expect(try validator.validate(request) == .webSocket(.init(negotiated: negotiated, key: Self.key)))
    }

    private func request(method: HTTPMethod) -> HTTPRequestHead { request("/my%20db/_blipsync", method) }

    private func request(_ change: (inout HTTPHeaders) -> Void) -> HTTPRequestHead {
        request("/my%20db/_blipsync", .GET, change)
    }

    private func request(_ uri: String, _ change: (inout HTTPHeaders) -> Void) -> HTTPRequestHead {
        request(uri, .GET, change)
    }
}
