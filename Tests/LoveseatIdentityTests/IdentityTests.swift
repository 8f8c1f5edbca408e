import Foundation
import LoveseatIdentity
import LoveseatModel
import LoveseatTesting
import Testing

// Group in ./test: programs
/// Identities: made, imported, kept and exported.
struct IdentityTests {
    private let scratch: Scratch
    private let store: FileIdentityStore

    init() throws {
        scratch = try Scratch()
        store = FileIdentityStore(folder: URL(filePath: scratch.path).appending(path: "identities"))
    }

    private func make(
        _ label: String? = "ours",
        _ more: [String: String] = [:],
        expiration: Date? = nil,
        issuer: TLSIdentity? = nil
    ) throws -> TLSIdentity {
        try TLSIdentity.createIdentity(
            for: .serverAuth,
            attributes: [certAttrCommonName: "Ana"].merging(more) { $1 },
            expiration: expiration,
            issuer: issuer,
            label: label,
            in: store
        )
    }

    private func code(_ body: () throws -> Void) -> LoveseatError? {
        do { try body() } catch { return error as? LoveseatError }
        return nil
    }

    /// Runs OpenSSL in the scratch folder, the independent judge of what we make and the maker of what we read.
    @discardableResult
    private func openssl(_ arguments: String...) throws -> String {
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["openssl"] + arguments
        process.currentDirectoryURL = URL(filePath: scratch.path)
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        process.standardInput = FileHandle.nullDevice
        try Lifeline.run(process)
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        try #require(process.terminationStatus == 0, "openssl \(arguments.joined(separator: " "))")
        return text
    }

    private func write(_ text: String, _ name: String) throws {
        try text.write(toFile: scratch.path + "/" + name, atomically: true, encoding: .utf8)
    }

    private func read(_ name: String) throws -> String {
        try String(contentsOfFile: scratch.path + "/" + name, encoding: .utf8)
    }

    @Test func `an identity is found under its label, lists itself, and can be deleted`() throws {
        let made = try make("a label with / and ü")
        let found = try #require(try TLSIdentity.identity(withLabel: "a label with / and ü", in: store))
        #expect(found.certs == made.certs)
        #expect(try found.pem(passphrase: nil) == made.pem(passphrase: nil))
        #expect(try TLSIdentity.labels(in: store) == ["a label with / and ü"])
        try TLSIdentity.deleteIdentity(withLabel: "a label with / and ü", in: store)
        try TLSIdentity.deleteIdentity(withLabel: "a label with / and ü", in: store)
        #expect(try TLSIdentity.identity(withLabel: "a label with / and ü", in: store) == nil)
    }

    @Test(arguments: [
        (certAttrHostname, "münchen.example", "xn--mnchen-3ya.example"), (certAttrHostname, "a b", "a-b"),
        (certAttrHostname, "good.example,a\u{7F}", "*.good.example"),
        (certAttrEmailAddress, "ana@münchen.example", "ana@example"),
        (certAttrURL, "https://example/ü", "https://example/%C3%BC"),
    ])
    func `a name beyond ASCII is refused with what to write instead`(
        _ key: String,
        _ bad: String,
        _ good: String
    )
        throws
    {
        let error = code { _ = try make("x", [key: bad]) }
        #expect(error?.code == .invalidParameter)
        #expect(error?.message.contains("a certificate cannot be for ") == true, "\(error?.message ?? "")")
        #expect(code { _ = try make("x", [key: good]) } == nil)
    }

    @Test func `a label that is taken, a missing name and wrong attributes are refused`() throws {
        _ = try make()
        #expect(code { _ = try make() }?.code == .crypto)
        #expect(code { _ = try make("x", [certAttrCommonName: ""]) }?.code == .crypto)
        #expect(code { _ = try make("x", [certAttrCountry: "Norway"]) }?.code == .crypto)
        #expect(code { _ = try make("x", [certAttrIPAddress: "300.1.1.1"]) }?.code == .invalidParameter)
        #expect(code { _ = try make("x", ["shoe size": "43"]) }?.message.contains("shoe size") == true)
        #expect(code { _ = try make("x", expiration: Date.distantPast) }?.code == .crypto)
        #expect(code { _ = try make("") }?.code == .crypto)
        #expect(try TLSIdentity.labels(in: store) == ["ours"])
    }

    @Test func `a certificate names its owner by every attribute`() throws {
        let identity = try make(
            "ours",
            [
                certAttrGivenName: "Ana", certAttrSurname: "Hansen", certAttrPseudonym: "ana7",
                certAttrPostalAddress: "Sofa Street 1", certAttrPostalCode: "0150", certAttrLocality: "Oslo",
                certAttrRegisteredID: "1.3.6.1.4.1.32473, 2.999.3",
            ]
        )
        try write(identity.certs[0].pem, "cert.pem")
        let text = try openssl("x509", "-in", "cert.pem", "-noout", "-text")
        for part in [
            "GN = Ana", "SN = Hansen", "pseudonym = ana7", "postalAddress = Sofa Street 1",
            "postalCode = 0150",
            "L = Oslo", "Registered ID:1.3.6.1.4.1.32473", "Registered ID:2.999.3",
        ] { #expect(text.contains(part), "\(part)") }
    }

    @Test(arguments: ["1", "1.40", "3.1", "1..2", "1.2.x", "1.-2", "4294967296.1"])
    func `what is not an object identifier is not a registered ID`(text: String) {
        #expect(code { _ = try make("x", [certAttrRegisteredID: "2.5,\(text)"]) }?.code == .invalidParameter)
    }

    @Test func `OpenSSL reads what is made: names, usage and a year's validity`() throws {
        let expiration = Date().addingTimeInterval(TLSIdentityTestPeriods.year)
        let identity = try make(
            "ours",
            [
                certAttrOrganization: "Sofa", certAttrCountry: "NO",
                certAttrHostname: "a.example, *.b.example",
                certAttrIPAddress: "192.0.2.7, 2001:db8::1",
            ]
        )
        #expect(abs(identity.expiration.timeIntervalSince(expiration)) < 5)
        try write(identity.certs[0].pem, "cert.pem")
        let text = try openssl("x509", "-in", "cert.pem", "-noout", "-text")
        for part in [
            "CN = Ana", "O = Sofa", "C = NO", "DNS:a.example", "DNS:*.b.example", "IP Address:192.0.2.7",
            "IP Address:2001:DB8:0:0:0:0:0:1", "TLS Web Server Authentication", "prime256v1", "CA:FALSE",
        ] { #expect(text.contains(part), "\(part)") }
        try openssl("verify", "-x509_strict", "-CAfile", "cert.pem", "cert.pem")
        let fingerprint = try openssl("x509", "-in", "cert.pem", "-noout", "-fingerprint", "-sha256")
        #expect(fingerprint.replacing(":", with: "").lowercased().contains(identity.certs[0].fingerprint))
    }

    @Test func `an own authority signs identities that OpenSSL verifies`() throws {
        let authority = try TLSIdentity.createIdentity(
            for: .certificateAuthority,
            attributes: [certAttrCommonName: "Our CA"],
            label: "ca",
            in: store
        )
        let issued = try make("leaf", issuer: authority)
        try #require(issued.certs.count == 2)
        #expect(issued.certs[1] == authority.certs[0])
        try write(authority.certs[0].pem, "ca.pem")
        try write(issued.certs[0].pem, "leaf.pem")
        try openssl("verify", "-x509_strict", "-CAfile", "ca.pem", "leaf.pem")
        #expect(!issued.certs[0].isSelfSigned)
        #expect(authority.certs[0].isSelfSigned)
    }

    @Test(arguments: [["rsa", "rsa_keygen_bits:2048"], ["EC", "ec_paramgen_curve:P-384"]])
    func `keys and certificates of OpenSSL are imported in every form`(_ kind: [String]) throws {
        try openssl("genpkey", "-algorithm", kind[0], "-pkeyopt", kind[1], "-out", "key.pem")
        try openssl(
            "req",
            "-x509",
            "-new",
            "-key",
            "key.pem",
            "-subj",
            "/CN=Bob",
            "-days",
            "9",
            "-out",
            "cert.pem"
        )
        try openssl("pkcs8", "-topk8", "-in", "key.pem", "-passout", "pass:sofa", "-out", "locked.pem")
        try openssl("pkcs8", "-topk8", "-nocrypt", "-in", "key.pem", "-outform", "DER", "-out", "key.der")
        try openssl("x509", "-in", "cert.pem", "-outform", "DER", "-out", "cert.der")
        try openssl(
            "pkcs12",
            "-export",
            "-inkey",
            "key.pem",
            "-in",
            "cert.pem",
            "-passout",
            "pass:sofa",
            "-out",
            "both.p12"
        )
        let certificate = try TLSCertificate(pem: read("cert.pem"))
        func data(_ name: String) throws -> Data {
            try Data(contentsOf: URL(filePath: scratch.path + "/" + name))
        }
        #expect(try TLSCertificate(der: data("cert.der")) == certificate)
        #expect(certificate.commonName == "Bob")
        for (key, password) in [("key.pem", nil), ("locked.pem", "sofa")] as [(String, String?)] {
            let identity = try TLSIdentity.importIdentity(
                withCertificates: read("cert.pem"),
                privateKey: read(key),
                password: password,
                label: nil,
                in: store
            )
            #expect(identity.certs == [certificate])
        }
        let packed = try TLSIdentity.importIdentity(
            withData: data("both.p12"),
            password: "sofa",
            label: "packed",
            in: store
        )
        #expect(packed.certs == [certificate])
        #expect(try TLSIdentity.identity(withLabel: "packed", in: store)?.certs == [certificate])
        let issuer = try TLSIdentity.createIssuer(
            withPrivateKey: data("key.der"),
            certificate: data("cert.der")
        )
        #expect(try make("signed", issuer: issuer).certs.count == 2)
        // And back: what we encrypt, OpenSSL opens.
        try write(packed.pem(passphrase: "couch"), "export.pem")
        let ours = try openssl("pkey", "-in", "export.pem", "-passin", "pass:couch", "-pubout")
        #expect(try ours == openssl("pkey", "-in", "key.pem", "-pubout"))
        for wrong in [nil, "", "wrong"] {
            #expect(
                code {
                    _ = try TLSIdentity.importIdentity(
                        withData: data("both.p12"),
                        password: wrong,
                        label: nil,
                        in: store
                    )
                }?.code == .crypto
            )
            #expect(
                code {
                    _ = try TLSIdentity.importIdentity(
                        withCertificates: read("cert.pem"),
                        privateKey: read("locked.pem"),
                        password: wrong,
                        label: nil,
                        in: store
                    )
                }?.code == .crypto
            )
        }
    }

    @Test func `a key that belongs to another certificate is refused`() throws {
        let (one, other) = (try make("one"), try make("other"))
        let error = code {
            _ = try TLSIdentity.importIdentity(
                withCertificates: one.certs[0].pem,
                privateKey: other.pem(passphrase: nil),
                label: nil,
                in: store
            )
        }
        #expect(error?.message.contains("does not belong") == true)
    }

    @Test func `damaged certificates, keys and containers are errors at every cut and flip`() throws {
        let identity = try make()
        var generator = SeededGenerator(seed: 7)
        let pem = try Array(identity.pem(passphrase: nil).utf8)
        try write(identity.pem(passphrase: nil), "both.pem")
        try openssl("pkcs12", "-export", "-in", "both.pem", "-passout", "pass:x", "-out", "both.p12")
        let packed = Array(try Data(contentsOf: URL(filePath: scratch.path + "/both.p12")))
        func damage(_ bytes: [UInt8]) -> [UInt8] {
            var bytes = bytes
            if Bool.random(using: &generator) {
                bytes.removeLast(Int.random(in: 1..<bytes.count, using: &generator))
            }
            bytes[Int.random(in: 0..<bytes.count, using: &generator)] ^=
                1 << UInt8.random(in: 0..<8, using: &generator)
            return bytes
        }
        for _ in 0..<300 {
            // It must not trap; a flip in a place that nobody reads is none of ours.
            _ = try? TLSCertificate(der: damage(identity.certs[0].derBytes)).commonName
            let text = String(decoding: damage(pem), as: UTF8.self)
            _ = try? TLSIdentity.importIdentity(
                withCertificates: text,
                privateKey: text,
                label: nil,
                in: store
            )
            let data = Data(damage(packed))
            _ = try? TLSIdentity.importIdentity(withData: data, password: "x", label: nil, in: store)
        }
        #expect(code { _ = try TLSCertificate(der: [1, 2, 3]) }?.code == .crypto)
        #expect(code { _ = try TLSCertificate(pem: "no PEM") }?.code == .crypto)
    }

    // MARK: The store

    @Test func `the folder is for its owner only, and refuses if it is not`() throws {
        _ = try make()
        let folder = store.folder.path
        let file = folder + "/ours.pem"
        func mode(_ path: String) throws -> Int? {
            try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        }
        #expect(try mode(folder) == 0o700)
        #expect(try mode(file) == 0o600)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file)
        let wide = code { _ = try TLSIdentity.identity(withLabel: "ours", in: store) }
        #expect(wide?.code == .crypto)
        #expect(wide?.message.contains("chmod 600") == true)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
        try FileManager.default.setAttributes([.posixPermissions: 0o750], ofItemAtPath: folder)
        #expect(
            code { _ = try TLSIdentity.identity(withLabel: "ours", in: store) }?.message.contains("chmod 700")
                == true
        )
        #expect(code { _ = try make("another") }?.code == .crypto)
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: folder)
        #expect(try TLSIdentity.identity(withLabel: "ours", in: store) != nil)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["ours.pem"])
    }

    @Test func `with a passphrase no key is readable on the disk`() throws {
        let locked = FileIdentityStore(folder: store.folder, passphrase: "sofa")
        let made = try TLSIdentity.createIdentity(
            for: .clientAuth,
            attributes: [certAttrCommonName: "Ana"],
            label: "ours",
            in: locked
        )
        let text = try String(contentsOf: store.folder.appending(path: "ours.pem"), encoding: .utf8)
        #expect(text.contains("BEGIN ENCRYPTED PRIVATE KEY"))
        #expect(!text.contains("BEGIN PRIVATE KEY"))
        #expect(try TLSIdentity.identity(withLabel: "ours", in: locked)?.certs == made.certs)
        #expect(code { _ = try TLSIdentity.identity(withLabel: "ours", in: store) }?.code == .crypto)
    }

    @Test func `the anonymous identity is made once, and again when it is about to expire`() throws {
        let first = try TLSIdentity.anonymousIdentity(in: store)
        #expect(try TLSIdentity.anonymousIdentity(in: store).certs == first.certs)
        try #require(first.certs.count == 1)
        #expect(first.certs[0].isSelfSigned)
        try TLSIdentity.deleteAnonymousIdentity(in: store)
        _ = try make("anonymous", expiration: Date().addingTimeInterval(20 * 24 * 3_600))
        let renewed = try TLSIdentity.anonymousIdentity(in: store)
        #expect(renewed.expiration.timeIntervalSinceNow > TLSIdentityTestPeriods.year)
    }

    @Test func `two that make the anonymous identity at once get the same`() async throws {
        let store = store
        let certificates = try await withThrowingTaskGroup(of: TLSCertificate?.self) { group in
            for _ in 0..<8 { group.addTask { try TLSIdentity.anonymousIdentity(in: store).certs.first } }
            return try await group.reduce(into: Set<TLSCertificate?>()) { $0.insert($1) }
        }
        #expect(certificates.count == 1)
    }
}

private enum TLSIdentityTestPeriods {
    static let year: TimeInterval = 365 * 24 * 3_600
}
