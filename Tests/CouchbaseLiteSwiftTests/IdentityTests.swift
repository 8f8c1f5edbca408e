import CouchbaseLiteSwift
import Foundation
import Testing

@Suite(.ownThreads) struct IdentityTests {
    private let label = "test-\(UUID().uuidString)"

    private func make(_ usages: KeyUsages = .serverAuth, issuer: TLSIdentity? = nil) throws -> TLSIdentity {
        try TLSIdentity.createIdentity(
            for: usages,
            attributes: [certAttrCommonName: "Ana"],
            issuer: issuer,
            label: label
        )
    }

    @Test func `an identity is found under its label until it is deleted`() throws {
        defer { try? TLSIdentity.deleteIdentity(withLabel: label) }
        #expect(try TLSIdentity.identity(withLabel: label) == nil)
        let made = try make()
        let found = try #require(try TLSIdentity.identity(withLabel: label))
        #expect(found.certs == made.certs)
        #expect(made.certs.count == 1)
        #expect(abs(made.expiration.timeIntervalSinceNow - 365 * 86_400) < 2 * 86_400)
        try TLSIdentity.deleteIdentity(withLabel: label)
        #expect(try TLSIdentity.identity(withLabel: label) == nil)
        try TLSIdentity.deleteIdentity(withLabel: label)
    }

    @Test func `an identity deletes itself`() throws {
        defer { try? TLSIdentity.deleteIdentity(withLabel: label) }
        let made = try make(.clientAuth)
        try made.deleteFromKeyChain()
        #expect(try TLSIdentity.identity(withLabel: label) == nil)
    }

    @Test func `a label is used once, and a common name is needed`() throws {
        defer { try? TLSIdentity.deleteIdentity(withLabel: label) }
        expectError(CBLError.crypto) {
            try TLSIdentity.createIdentity(for: .serverAuth, attributes: [:], label: label)
        }
        _ = try make()
        expectError(CBLError.crypto) { try make() }
    }

    @Test func `certificates are made of DER`() throws {
        defer { try? TLSIdentity.deleteIdentity(withLabel: label) }
        let certificate = try #require(try make().certs.first)
        let data = SecCertificateCopyData(certificate) as Data
        #expect(SecCertificateCreateWithData(nil, data as CFData) == certificate)
        #expect(SecCertificateCreateWithData(nil, Data("no".utf8) as CFData) == nil)
    }
}
