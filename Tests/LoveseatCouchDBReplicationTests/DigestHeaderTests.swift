import LoveseatCouchDBReplication
import LoveseatModel
import Testing

/// Digest's headers (RFC 7616), without a connection. Each clause of what is read has a header that lacks only that.
struct DigestHeaderTests {
    private static let hash: DigestAuthentication.Hash = { algorithm, bytes in
        let first: UInt8 = algorithm == .md5 ? 5 : 2
        return (0..<16).map { place in bytes.reduce(first &+ place) { $0 &* 31 &+ $1 } }
    }

    private static let parts = [
        "username=\"a\"", "realm=\"r\"", "nonce=\"n\"", "uri=\"/x\"", "cnonce=\"c\"", "response=\"AB\"",
        "qop=auth",
        "nc=0000000a",
    ]

    private func response(_ changes: [Int: String] = [:], more: String = "") -> DigestAuthentication.Response?
    {
        let parts = Self.parts.enumerated().map { changes[$0.offset] ?? $0.element }.filter { !$0.isEmpty }
        return DigestAuthentication.Response("Digest " + parts.joined(separator: ", ") + more)
    }

    @Test func `a proof needs each of its parts`() throws {
        let read = try #require(response())
        #expect(read.username == "a")
        #expect(read.realm == "r")
        #expect(read.target == "/x")
        #expect(read.count == 10)
        #expect(read.proof == "ab")
        #expect(read.algorithm == .md5)
        #expect(read.opaque == nil)
        for place in Self.parts.indices { #expect(response([place: ""]) == nil, "\(Self.parts[place])") }
        for (place, text) in [
            (6, "qop=auth-int"), (7, "nc=a"), (7, "nc=00000000"), (7, "nc=0000000g"), (7, "nc=00000000a"),
            (0, "username*=UTF-8'a"), (0, "username*=latin1''a"), (0, "username*=UTF-8''%4"),
            (0, "username*=UTF-8''%4g"), (0, "username*=UTF-8''%FF"), (2, "nonce=\"n"), (2, "nonce=n n"),
            (2, "nonce"),
        ] {
            #expect(response([place: text]) == nil, "\(text)")
        }
        for more in [
            ", username*=UTF-8''a", ", algorithm=SHA-512", ", userhash=true", ", realm=\"r\"", ", =x",
        ] {
            #expect(response(more: more) == nil, "\(more)")
        }
        #expect(response([0: "username*=utf-8'en'%c3%bc%27"])?.username == "ü'")
        #expect(response([0: "USERNAME = \"a\\\"b\""])?.username == "a\"b")
        #expect(response(more: " , ,\talgorithm=sha-256,opaque=o")?.algorithm == .sha256)
        #expect(response(more: ", opaque=o , userhash=false")?.opaque == "o")
        #expect(response(more: ", x=\"" + String(repeating: "y", count: 16 << 10) + "\"") == nil)
    }

    @Test(arguments: [
        ("Digest realm=\"r\", nonce=\"n\", qop=\"auth-int, auth\"", true),
        ("DIGEST realm=r,nonce=n,qop=AUTH", true),
        ("Digest realm=\"r\", nonce=\"n\"", false),
        ("Digest realm=\"r\", nonce=\"n\", qop=\"auth-int\"", false),
        ("Digest nonce=\"n\", qop=auth", false), ("Digest realm=\"r\", qop=auth", false),
        ("Digest realm=\"r\", nonce=\"n\", qop=auth, algorithm=MD5-sess", false),
        ("Basic realm=\"r\"", false),
        ("Digest", false), ("Digest ", false), ("Digestrealm=r,nonce=n,qop=auth", false),
    ])
    func `a challenge is read if it can be answered`(_ header: String, _ isRead: Bool) {
        #expect((DigestAuthentication.Challenge(header) != nil) == isRead)
    }

    @Test func `a challenge and its answer arrive as they were written`() throws {
        var challenge = DigestAuthentication.Challenge(realm: "a \"r\\\"", nonce: "n", algorithm: .sha256)
        #expect(DigestAuthentication.Challenge(challenge.header) == challenge)
        #expect(challenge.header.contains("stale") == false)
        challenge.isStale = true
        challenge.opaque = "o,p"
        #expect(DigestAuthentication.Challenge(challenge.header) == challenge)
        for (count, text) in [(1, "00000001"), (0xABCDEF, "00abcdef"), (UInt32.max, "ffffffff")]
            as [(UInt32, String)]
        {
            let answer = DigestAuthentication.Response(
                to: challenge,
                username: "ü",
                secret: "5ec",
                method: "GET",
                target: "/",
                count: count,
                clientNonce: "c",
                Self.hash
            )
            #expect(answer.header.contains("nc=\(text),"))
            let read = try #require(DigestAuthentication.Response(answer.header))
            #expect(read == answer)
            #expect(read.username == "ü")
            #expect(read.opaque == "o,p")
            #expect(read.expectedProof(secret: "5EC", method: "GET", Self.hash) == answer.proof)
            #expect(read.expectedProof(secret: "5ec", method: "PUT", Self.hash) != answer.proof)
            #expect(read.expectedProof(secret: "5ed", method: "GET", Self.hash) != answer.proof)
        }
    }
}
