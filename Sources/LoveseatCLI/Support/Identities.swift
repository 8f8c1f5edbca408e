import Foundation
import Loveseat

/// The keys and certificates of commands.
enum Identities {
    /// The user's identities; their keys are encrypted if `LOVESEAT_PASSPHRASE` is set.
    static var store: any IdentityStore {
        guard let passphrase = ProcessInfo.processInfo.environment["LOVESEAT_PASSPHRASE"] else {
            return TLSIdentity.standardStore
        }
        return FileIdentityStore(folder: FileIdentityStore.standardFolder, passphrase: passphrase)
    }

    /// The identity that an option means: `anonymous`, a label, `cert.pem:key.pem`, `both.pem` or `file.p12`.
    static func identity(_ text: String) throws -> TLSIdentity {
        if text == "anonymous" { return try TLSIdentity.anonymousIdentity(in: store) }
        let parts = text.split(separator: ":", maxSplits: 1).map(String.init)
        if parts.count == 2 { return try read(certificates: parts[0], key: parts[1], label: nil) }
        if isFile(text) { return try read(certificates: text, key: nil, label: nil) }
        return try labelled(text)
    }

    /// Checks that a label is free.
    ///
    /// - Throws: `cannotCreate` if it is not. A store reports that as `crypto`, like all else.
    static func require(unused label: String) throws {
        if try TLSIdentity.labels(in: store).contains(where: { $0.isExactly(label) }) {
            throw LoveseatError(
                .cannotCreate,
                "an identity \"\(label)\" exists already: delete it first, or use another label"
            )
        }
    }

    static func labelled(_ label: String) throws -> TLSIdentity {
        guard let identity = try TLSIdentity.identity(withLabel: label, in: store) else {
            throw LoveseatError.absent(
                "there is no identity \"\(label)\"",
                nearest: NearestName.nearest(to: label, among: try TLSIdentity.labels(in: store)),
                advice: "see `loveseat identity list`"
            )
        }
        return identity
    }

    /// Reads PEM files, or a PKCS#12 file, whose password `LOVESEAT_IDENTITY_PASSWORD` has.
    static func read(certificates: String, key: String?, label: String?) throws -> TLSIdentity {
        let password = ProcessInfo.processInfo.environment["LOVESEAT_IDENTITY_PASSWORD"]
        if isContainer(certificates) {
            return try TLSIdentity.importIdentity(
                withData: try data(certificates),
                password: password,
                label: label,
                in: store
            )
        }
        return try TLSIdentity.importIdentity(
            withCertificates: try text(certificates),
            privateKey: try text(key ?? certificates),
            password: password,
            label: label,
            in: store
        )
    }

    /// The certificates of a PEM file.
    static func certificates(_ path: String) throws -> [TLSCertificate] {
        let pem = try text(path)
        do { return try TLSCertificate.all(pem: pem) } catch {
            throw LoveseatError(error.code, "\(path): \(error.message)")
        }
    }

    private static func isContainer(_ path: String) -> Bool {
        path.hasSuffix(".p12") || path.hasSuffix(".pfx")
    }

    private static func isFile(_ text: String) -> Bool {
        isContainer(text) || text.hasSuffix(".pem") || text.contains("/")
    }

    private static func data(_ path: String) throws -> Data {
        let limit = 1 << 20
        let data = try OptionFile.contents(path, limit: limit + 1)
        guard data.count <= limit else {
            throw LoveseatError(.crypto, "\(path) is not an identity: it has more than \(limit) bytes")
        }
        return data
    }

    private static func text(_ path: String) throws -> String {
        String(decoding: try data(path), as: UTF8.self)
    }
}
