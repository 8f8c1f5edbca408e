import Foundation
import Loveseat
import PhotoDropCore

/// Keys and certificates in files.
package enum IdentityFile {
    private static let maximumBytes = 1 << 20

    /// Reads an identity.
    ///
    /// - Parameters:
    ///   - text: `certificate.pem:key.pem`, a PEM file with both, or a PKCS#12 file, which ends in `.p12` or `.pfx`.
    ///   - password: The password of an encrypted key; nil if it is not encrypted.
    /// - Returns: The key with its certificates.
    /// - Throws: `notFound` if a file cannot be read, `data` if it does not contain an identity.
    package static func read(_ text: String, password: String?) throws(DropError) -> TLSIdentity {
        let isContainer = text.hasSuffix(".p12") || text.hasSuffix(".pfx")
        let paths = isContainer ? [text] : text.split(separator: ":", maxSplits: 1).map(String.init)
        guard let first = paths.first, let last = paths.last else {
            throw DropError(.usage, "--identity needs the name of a file")
        }
        let certificates = try content(first)
        let key = try content(last)
        do throws(LoveseatError) {
            if isContainer {
                return try TLSIdentity.importIdentity(withData: certificates, password: password, label: nil)
            }
            return try TLSIdentity.importIdentity(
                withCertificates: String(decoding: certificates, as: UTF8.self),
                privateKey: String(decoding: key, as: UTF8.self),
                password: password,
                label: nil
            )
        } catch { throw DropError(.data, "\(text) cannot be used: \(error.message)") }
    }

    private static func content(_ path: String) throws(DropError) -> Data {
        guard let file = FileHandle(forReadingAtPath: path) else {
            throw DropError(.notFound, "cannot read \(path)")
        }
        defer { try? file.close() }
        guard let data = try? file.read(upToCount: maximumBytes + 1), data.count <= maximumBytes else {
            throw DropError(.data, "\(path) is not an identity: it is larger than \(maximumBytes) bytes")
        }
        return data
    }
}
