import Crypto
import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBReplication
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import Testing

/// Digest authentication (RFC 7616), alone and over real connections.
struct DigestTests {
    private static let hash: DigestAuthentication.Hash = { algorithm, bytes in
        switch algorithm {
        case .md5: Array(Insecure.MD5.hash(data: bytes))
        case .sha256: Array(SHA256.hash(data: bytes))
        }
    }

    private static func response(
        to challenge: DigestAuthentication.Challenge,
        _ user: String = "ana",
        _ password: String = "secret",
        method: String = "GET",
        target: String,
        count: UInt32 = 1
    ) -> String {
        let secret = DigestAuthentication.secret(
            username: user,
            realm: challenge.realm,
            password: password,
            challenge.algorithm,
            hash
        )
        return DigestAuthentication.Response(
            to: challenge,
            username: user,
            secret: secret,
            method: method,
            target: target,
            count: count,
            clientNonce: "c0ffee",
            hash
        ).header
    }

    // MARK: Pure

    @Test(arguments: [
        (
            DigestAuthentication.Algorithm.sha256,
            "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"
        ),
        (.md5, "8ca523f5e9506fed4657c9700eebdbec"),
    ]) func `the examples of RFC 7616 are computed`(
        _ algorithm: DigestAuthentication.Algorithm,
        _ proof: String
    ) throws {
        let header =
            "Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", algorithm=\(algorithm.rawValue), "
            + "nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\""
        let challenge = try #require(DigestAuthentication.Challenge(header))
        let secret = DigestAuthentication.secret(
            username: "Mufasa",
            realm: challenge.realm,
            password: "Circle of Life",
            algorithm,
            Self.hash
        )
        let response = DigestAuthentication.Response(
            to: challenge,
            username: "Mufasa",
            secret: secret,
            method: "GET",
            target: "/dir/index.html",
            count: 1,
            clientNonce: "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ",
            Self.hash
        )
        #expect(response.proof == proof)
        let read = try #require(DigestAuthentication.Response(response.header))
        #expect(read == response)
        #expect(read.expectedProof(secret: secret, method: "GET", Self.hash) == proof)
    }

    @Test(arguments: ["jäger", "a\"b\\c", "x, y=z"])
    func `a user name of any characters arrives`(_ name: String) throws {
        let challenge = DigestAuthentication.Challenge(realm: "r\"1", nonce: "n", algorithm: .sha256)
        #expect(DigestAuthentication.Challenge(challenge.header) == challenge)
        let header = Self.response(to: challenge, name, target: "/a?b=\"c\"")
        let read = try #require(DigestAuthentication.Response(header))
        #expect(read.username == name)
        #expect(read.target == "/a?b=\"c\"")
    }

    @Test(arguments: [
        "Digest", "Digest ", "Basic YTpi", "Digest username=\"a\"",
        "Digest username=\"a\", realm=\"r\", nonce=\"n\", uri=\"/\", qop=auth, nc=1, cnonce=\"c\", response=\"00\"",
        "Digest username=\"a\", realm=\"r\", nonce=\"n\", uri=\"/\", qop=auth-int, nc=00000001, cnonce=\"c\", response=\"00\"",
        "Digest username=\"a\", realm=\"r\", nonce=\"n\", uri=\"/\", nc=00000001, cnonce=\"c\", response=\"00\"",
        "Digest username=\"a\", realm=\"r\", nonce=\"n\", uri=\"/\", qop=auth, nc=00000000, cnonce=\"c\", response=\"00\"",
        "Digest username=\"a\", username=\"b\", realm=\"r\", nonce=\"n\", uri=\"/\", qop=auth, nc=00000001, cnonce=\"c\", response=\"00\"",
        "Digest username=\"a\", realm=\"r\", nonce=\"n\", uri=\"/\", qop=auth, nc=00000001, cnonce=\"c\", response=\"00",
        "Digest username=\"a\", realm=\"r\", nonce=\"n\", uri=\"/\", algorithm=MD5-sess, qop=auth, nc=00000001, cnonce=\"c\", response=\"00\"",
    ]) func `a header that lacks something is not accepted`(_ header: String) {
        #expect(DigestAuthentication.Response(header) == nil)
    }

    private static func nonces() -> DigestNonces {
        DigestNonces { Array(HMAC<SHA256>.authenticationCode(for: $0, using: SymmetricKey(data: [1]))) }
    }

    private static let random = [UInt8](repeating: 7, count: 12)

    @Test func `a count is accepted once, in any order within a window`() {
        var nonces = Self.nonces()
        let nonce = nonces.make(random: Self.random, now: 10)
        for count: UInt32 in [1, 3, 2, 600, 599, 89] {
            #expect(nonces.use(nonce, count: count, now: 11) == .accepted, "\(count)")
        }
        for count: UInt32 in [1, 2, 3, 599, 600, 88, 89] {
            #expect(nonces.use(nonce, count: count, now: 11) == .stale, "\(count)")
        }
        #expect(nonces.use(nonce, count: .max, now: 11) == .accepted)
        #expect(nonces.use(nonce, count: .max, now: 11) == .stale)
    }

    @Test func `a nonce ends after its time, and a foreign one is unknown`() {
        var nonces = Self.nonces()
        let nonce = nonces.make(random: Self.random, now: 10)
        #expect(nonces.use(nonce, count: 1, now: 10 + DigestNonces.lifetime + 1) == .stale)
        #expect(nonces.use("dcd98b7102dd2f0e8b11d0f600bfb0c093", count: 1, now: 10) == .unknown)
        #expect(nonces.use("B" + nonce.dropFirst(), count: 1, now: 10) == .unknown)
    }

    @Test func `few nonces are kept, and none that was forgotten is accepted again`() {
        var nonces = Self.nonces()
        var all: [String] = []
        for number in 0..<20_000 {
            let random = (0..<12).map { UInt8(truncatingIfNeeded: number >> ($0 % 3 * 8)) }
            let nonce = nonces.make(random: random, now: 10 + Double(number) / 200)
            #expect(nonces.use(nonce, count: 1, now: 111) == .accepted)
            all.append(nonce)
        }
        #expect(nonces.keptCount <= DigestNonces.maximumKept)
        #expect(all.allSatisfy { nonces.use($0, count: 1, now: 111) == .stale })
    }

    // MARK: Over connections

    private func serve(_ change: (inout CouchDBListenerConfiguration) -> Void = { _ in }) async throws
        -> ServedDatabase
    {
        try await ServedDatabase {
            $0.authenticator = ListenerPasswordAuthenticator(secret: { name in
                switch name {
                case "ana": .password("secret")
                case "hashed":
                    .hashes(
                        md5: DigestAuthentication.secret(
                            username: name,
                            realm: "Loveseat",
                            password: "secret",
                            .md5,
                            Self.hash
                        )
                    )
                default: nil
                }
            })
            change(&$0)
        }
    }

    private func challenges(_ answer: RawClient.Answer) -> [DigestAuthentication.Challenge] {
        answer.all("www-authenticate").compactMap { DigestAuthentication.Challenge($0) }
    }

    @Test func `a client logs in with either algorithm, and its password does not travel`() async throws {
        let served = try await serve()
        let first = try await served.call("GET", "/main")
        #expect(first.status == 401)
        #expect(first.json["error"]?.string == "unauthorized")
        let offered = challenges(first)
        #expect(offered.map(\.algorithm) == [.sha256, .md5])
        #expect(first.all("www-authenticate").last?.hasPrefix("Basic ") == true)
        for (index, challenge) in offered.enumerated() {
            let target = "/main?x=\(index)"
            let header = Self.response(to: challenge, target: target, count: UInt32(index + 1))
            let answer = try await served.call("GET", target, nil, [("Authorization", header)])
            #expect(answer.status == 200)
            #expect(answer.json["db_name"]?.string == "main")
        }
        await served.listener.stop()
    }

    @Test func `a request that is sent again is refused, and the client gets a new nonce`() async throws {
        let served = try await serve()
        let challenge = try #require(challenges(try await served.call("GET", "/main")).first)
        let header = Self.response(to: challenge, target: "/main")
        #expect(try await served.call("GET", "/main", nil, [("Authorization", header)]).status == 200)
        let again = try await served.call("GET", "/main", nil, [("Authorization", header)])
        #expect(again.status == 401)
        let fresh = try #require(challenges(again).first)
        #expect(fresh.isStale)
        #expect(fresh.nonce != challenge.nonce)
        let other = Self.response(to: fresh, target: "/main")
        #expect(try await served.call("GET", "/main", nil, [("Authorization", other)]).status == 200)
        // For another request it proves nothing.
        let elsewhere = try await served.call(
            "GET",
            "/_all_dbs",
            nil,
            [("Authorization", Self.response(to: fresh, target: "/main", count: 2))]
        )
        #expect(elsewhere.status == 400)
        let method = try await served.call(
            "PUT",
            "/main/x",
            [:],
            [("Authorization", Self.response(to: fresh, target: "/main/x", count: 3))]
        )
        #expect(method.status == 401)
        await served.listener.stop()
    }

    @Test(arguments: [("ana", "wrong"), ("nobody", "secret"), ("nobody", "")])
    func `a wrong password is refused and is not called stale`(_ user: String, _ password: String)
        async throws
    {
        let served = try await serve()
        let challenge = try #require(challenges(try await served.call("GET", "/main")).first)
        let header = Self.response(to: challenge, user, password, target: "/main")
        let answer = try await served.call("GET", "/main", nil, [("Authorization", header)])
        #expect(answer.status == 401)
        #expect(challenges(answer).first?.isStale == false)
        await served.listener.stop()
    }

    @Test func `a hash of the password is enough, for its algorithm and for Basic`() async throws {
        let served = try await serve()
        let offered = challenges(try await served.call("GET", "/main"))
        for (challenge, status) in zip(offered, [401, 200]) {
            let header = Self.response(to: challenge, "hashed", target: "/main")
            let answer = try await served.call("GET", "/main", nil, [("Authorization", header)])
            #expect(answer.status == status, "\(challenge.algorithm)")
        }
        for (password, status) in [("secret", 200), ("Secret", 401)] {
            let basic = "Basic " + Data("hashed:\(password)".utf8).base64EncodedString()
            #expect(
                try await served.call("GET", "/main", nil, [("Authorization", basic)]).status == status
            )
        }
        await served.listener.stop()
    }

    @Test func `a listener that wants no plain passwords takes Digest alone`() async throws {
        let served = try await serve { $0.allowsBasicWithoutTLS = false }
        let basic = "Basic " + Data("ana:secret".utf8).base64EncodedString()
        let refused = try await served.call("GET", "/main", nil, [("Authorization", basic)])
        #expect(refused.status == 401)
        #expect(refused.all("www-authenticate").allSatisfy { $0.hasPrefix("Digest ") })
        let login = try await served.call("POST", "/_session", ["name": "ana", "password": "secret"])
        #expect(login.status == 404)
        let challenge = try #require(challenges(refused).last)
        let header = Self.response(to: challenge, target: "/main")
        #expect(try await served.call("GET", "/main", nil, [("Authorization", header)]).status == 200)
        await served.listener.stop()
        let error = await #expect(throws: LoveseatError.self) {
            _ = try await ServedDatabase {
                $0.allowsBasicWithoutTLS = false
                $0.authenticator = ListenerPasswordAuthenticator { _, _ in true }
            }
        }
        #expect(error?.code == .invalidParameter)
    }

    @Test func `guessing at a password is slowed down as with Basic`() async throws {
        let served = try await serve()
        let challenge = try #require(challenges(try await served.call("GET", "/main")).first)
        var statuses: [Int] = []
        for count in 1...12 {
            let header = Self.response(
                to: challenge,
                "ana",
                "guess\(count)",
                target: "/main",
                count: UInt32(count)
            )
            statuses.append(try await served.call("GET", "/main", nil, [("Authorization", header)]).status)
            if statuses.last == 429 { break }
        }
        #expect(statuses.last == 429)
        await served.listener.stop()
    }
}
