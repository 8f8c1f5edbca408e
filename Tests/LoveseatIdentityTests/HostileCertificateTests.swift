import Crypto
import Foundation
import LoveseatIdentity
import LoveseatModel
import LoveseatTesting
import SwiftASN1
import Testing
import X509

// Group in ./test: programs
/// Certificates that no honest authority makes: with dates that make no sense, and such as only one of two readers accepts.
struct HostileCertificateTests {
    private struct Issued {
        let certificate: TLSCertificate
        let name: DistinguishedName
        let key: Certificate.PrivateKey
        let isValidToday: Bool
    }

    /// A moment of the years 0 to 9999 that is not today: one near today, one at which an encoding of dates begins or ends, or any.
    private static func date(_ generator: inout SeededGenerator) -> Date {
        let (first, last) = (-62_167_219_200, 253_402_300_799)
        let edges = [first, last, -631_152_001, -631_152_000, 0, 2_524_607_999, 2_524_608_000]
        switch generator.int(0...2) {
        case 0:
            let days = generator.int(1...400) * (generator.chance(0.5) ? 1 : -1)
            return Date().addingTimeInterval(Double(days) * 86_400)
        case 1: return Date(timeIntervalSince1970: Double(generator.pick(edges)))
        default: return Date(timeIntervalSince1970: Double(generator.int(first...last)))
        }
    }

    private static func issue(
        _ name: String,
        isAuthority: Bool = true,
        by issuer: Issued? = nil,
        _ generator: inout SeededGenerator
    ) throws -> Issued {
        let (begin, end) = (date(&generator), date(&generator))
        let key = Certificate.PrivateKey(P256.Signing.PrivateKey())
        let subject = try DistinguishedName { CommonName(name) }
        let extensions = try Certificate.Extensions {
            if isAuthority {
                Critical(BasicConstraints.isCertificateAuthority(maxPathLength: nil))
            } else {
                Critical(BasicConstraints.notCertificateAuthority)
                SubjectAlternativeNames([.dnsName("localhost")])
            }
        }
        let certificate = try Certificate(
            version: .v3,
            serialNumber: Certificate.SerialNumber(),
            publicKey: key.publicKey,
            notValidBefore: begin,
            notValidAfter: end,
            issuer: issuer?.name ?? subject,
            subject: subject,
            extensions: extensions,
            issuerPrivateKey: issuer?.key ?? key
        )
        var serializer = DER.Serializer()
        try serializer.serialize(certificate)
        return Issued(
            certificate: try TLSCertificate(der: serializer.serializedBytes),
            name: subject,
            key: key,
            isValidToday: begin < Date() && Date() < end
        )
    }

    /// Whether a server with a chain is trusted.
    private static func trusts(
        _ chain: [TLSCertificate],
        _ change: (inout CertificateTrust.ServerRules) -> Void
    ) async -> Bool {
        var rules = CertificateTrust.ServerRules()
        change(&rules)
        return await CertificateTrust.validate(server: chain, host: "localhost", rules) == nil
    }

    @Test(arguments: PropertySeeds.of("CERTIFICATES", 100))
    func `certificates of any dates, reversed ones too, are trusted exactly while they are valid`(
        _ seed: UInt64
    ) async throws {
        var generator = SeededGenerator(seed: seed)
        let root = try Self.issue("CA", &generator)
        let middle = generator.chance(0.5) ? try Self.issue("Middle", by: root, &generator) : nil
        let leaf = try Self.issue("kiosk", isAuthority: false, by: middle ?? root, &generator)
        let (own, authority) = (leaf.certificate, root.certificate)
        let chain = [own] + (middle.map { [$0.certificate] } ?? [])
        let isValidBelow = leaf.isValidToday && middle?.isValidToday != false
        let isValid = isValidBelow && root.isValidToday
        // A pinned certificate does not expire; what it has issued does.
        #expect(await Self.trusts(chain) { $0.pin = own.fingerprint })
        #expect(await Self.trusts(chain + [authority]) { $0.pin = authority.fingerprint } == isValidBelow)
        #expect(
            await Self.trusts(chain) {
                $0.pin = authority.fingerprint
                $0.pinnedCertificate = authority
            } == isValidBelow
        )
        #expect(await Self.trusts(chain) { $0.acceptsAny = true })
        #expect(await Self.trusts([authority]) { $0.onlySelfSigned = true } == root.isValidToday)
        #expect(await Self.trusts(chain) { $0.roots = [authority] } == isValid)
        #expect(await Self.trusts(chain) { $0.roots = [own] } == leaf.isValidToday)
        for (roots, expected) in [([authority], isValid), ([own], leaf.isValidToday)] {
            let error = await CertificateTrust.validate(client: chain, roots: roots)
            #expect((error == nil) == expected)
        }
        // What people and programs are shown of it.
        for certificate in chain + [authority] {
            #expect(!certificate.subject.isEmpty && !certificate.description.isEmpty)
            #expect(certificate.notValidBefore != .distantPast && certificate.notValidAfter != .distantPast)
        }
    }

    @Test(arguments: [true, false])
    func `a PKCS#12 file with a certificate that cannot be read is refused when it is imported`(
        _ isOwn: Bool
    ) throws {
        let scratch = try Scratch()
        let store = FileIdentityStore(folder: URL(filePath: scratch.path).appending(path: "identities"))
        func make(_ name: String) throws -> TLSIdentity {
            try TLSIdentity.createIdentity(
                for: .serverAuth,
                attributes: [certAttrCommonName: name],
                label: nil,
                in: store
            )
        }
        let (own, other) = (try make("own"), try make("other"))
        let certificates = try [own, other].map { identity in
            let certificate = try #require(identity.certs.first)
            return (identity === own) == isOwn ? try Self.unreadable(certificate) : certificate
        }
        let texts = [
            ("certificates", certificates.map(\.pem).joined()), ("own", try own.pem(passphrase: nil)),
        ]
        for (name, text) in texts {
            try text.write(toFile: "\(scratch.path)/\(name).pem", atomically: true, encoding: .utf8)
        }
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments =
            ["openssl", "pkcs12", "-export", "-in", "certificates.pem", "-inkey", "own.pem"]
            + ["-out", "all.p12", "-passout", "pass:x"]
        process.currentDirectoryURL = URL(filePath: scratch.path)
        process.standardError = FileHandle.nullDevice
        try Lifeline.run(process)
        process.waitUntilExit()
        try #require(process.terminationStatus == 0)
        let data = try Data(contentsOf: URL(filePath: scratch.path + "/all.p12"))
        let error = #expect(throws: LoveseatError.self) {
            try TLSIdentity.importIdentity(withData: data, password: "x", label: "both", in: store)
        }
        #expect(error?.code == .crypto)
        #expect(error?.message.contains("not an X.509 certificate") == true)
        #expect(try TLSIdentity.labels(in: store).isEmpty)
    }

    /// A certificate that has an extension twice: BoringSSL reads it, and X509 does not.
    private static func unreadable(_ certificate: TLSCertificate) throws -> TLSCertificate {
        // The subject's key identifier becomes a second one of the issuer's.
        let (subject, issuer): ([UInt8], [UInt8]) = ([6, 3, 0x55, 0x1D, 0x0E], [6, 3, 0x55, 0x1D, 0x23])
        let bytes = certificate.derBytes.replacing(subject, with: issuer)
        let error = #expect(throws: LoveseatError.self) { try TLSCertificate(der: bytes) }
        #expect(error?.code == .crypto)
        return TLSCertificate(checked: bytes)
    }
}
