import Crypto
import LoveseatNetwork
import Testing

/// CPace over X25519: the test vectors of draft-irtf-cfrg-cpace (B.1).
struct CPaceTests {
    private static func bytes(_ text: String) -> [UInt8] {
        let digits = text.compactMap(\.hexDigitValue)
        return stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }

    private let session = CPace.Session(
        secret: Array("Password".utf8),
        label: bytes("6f630b425f726573706f6e6465720b415f696e69746961746f72"),
        number: bytes("7e4b4791d6a8ef019b936c79fb7f2c57")
    )

    private func side(_ scalar: String) throws -> CPace {
        try CPace(session, scalar: .init(rawRepresentation: Self.bytes(scalar)))
    }

    private static let ya = "21b4f4bd9e64ed355c3eb676a28ebedaf6d8f17bdc365995b319097153044080"
    private static let yb = "848b0779ff415f0af4ea14df9dd1d3c29ac41d836c7808896c4eba19c51ac40a"

    @Test func `the secret is mapped to the generator of the draft`() throws {
        #expect(
            try CPace.generator(session)
                == Self.bytes("64e8099e3ea682cfdc5cb665c057ebb514d06bf23ebc9f743b51b82242327074")
        )
    }

    @Test func `both sides get the key of the draft`() throws {
        let (a, b) = (try side(Self.ya), try side(Self.yb))
        #expect(
            a.share == Self.bytes("1b02dad6dbd29a07b6d28c9e04cb2f184f0734350e32bb7e62ff9dbcfdb63d15")
        )
        #expect(
            b.share == Self.bytes("20cda5955f82c4931545bcbf40758ce1010d7db4db2a907013d79c7a8fcf957f")
        )
        let first = CPace.Message(share: a.share, associated: Array("ADa".utf8))
        let second = CPace.Message(share: b.share, associated: Array("ADb".utf8))
        let expected = Self.bytes(
            """
            a051ee5ee2499d16da3f69f430218b8ea94a18a45b67f9e86495b382c33d14a5\
            c38cecc0cc834f960e39e0d1bf7d76b9ef5d54eecc5e0f386c97ad12da8c3d5f
            """
        )
        #expect(try a.key(first: first, second: second) == expected)
        #expect(try b.key(first: first, second: second) == expected)
    }

    @Test(arguments: [
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
        "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    ])
    func `a share of low order ends the exchange`(_ point: String) throws {
        let a = try side("af46e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449aff")
        let first = CPace.Message(share: a.share, associated: [])
        #expect(throws: CryptoKitError.self) {
            try a.key(first: first, second: CPace.Message(share: Self.bytes(point), associated: []))
        }
    }

    @Test func `every pair of sides with one secret agrees, and with two secrets never does`() throws {
        for number in 0..<50 {
            func session(_ secret: String) -> CPace.Session {
                CPace.Session(secret: Array(secret.utf8), label: [], number: [UInt8(number)])
            }
            let (a, b, c) = (
                try CPace(session("\(number)")), try CPace(session("\(number)")),
                try CPace(session("\(number) "))
            )
            let (one, two, three) = (
                CPace.Message(share: a.share, associated: [1]),
                CPace.Message(share: b.share, associated: [2]),
                CPace.Message(share: c.share, associated: [2])
            )
            #expect(try a.key(first: one, second: two) == b.key(first: one, second: two))
            #expect(try a.key(first: one, second: three) != c.key(first: one, second: three))
        }
    }
}
