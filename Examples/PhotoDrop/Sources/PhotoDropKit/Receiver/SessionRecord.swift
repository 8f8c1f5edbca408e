import Foundation
import Loveseat
import PhotoDropCore

/// What a session needs to go on after a restart. It is as secret as the code.
package struct SessionRecord: Codable, Sendable {
    package static let fileName = "session.json"
    private static let idBytes = 8

    /// 16 hexadecimal digits.
    package let id: String
    private let secretBytes: [UInt8]
    private let identityPEM: String
    package var folder: String
    package var port: UInt16

    package var secret: DropSecret { DropSecret(bytes: secretBytes) }

    /// Creates a session with a new secret, and with a new key unless there is an identity for it.
    ///
    /// - Throws: `disk` if no key can be created.
    package init(folder: String, port: UInt16, identity: TLSIdentity? = nil) throws(DropError) {
        id = TextCoding.hexadecimal(RandomBytes.make(Self.idBytes))
        secretBytes = RandomBytes.make(DropSecret.byteCount)
        self.folder = folder
        self.port = port
        do {
            let used: TLSIdentity
            if let identity {
                used = identity
            } else {
                used = try TLSIdentity.createIdentity(
                    for: .serverAuth,
                    attributes: [certAttrCommonName: "PhotoDrop"],
                    label: nil
                )
            }
            identityPEM = try used.pem(passphrase: nil)
        } catch { throw DropError(.disk, error.message) }
    }

    /// - Throws: `data` if the record is damaged.
    package func identity() throws(DropError) -> TLSIdentity {
        do {
            return try TLSIdentity.importIdentity(
                withCertificates: identityPEM,
                privateKey: identityPEM,
                label: nil
            )
        } catch { throw DropError(.data, "the session is damaged: \(error.message)") }
    }

    package func write(to folder: TemporaryFolder) throws(DropError) {
        guard let data = try? JSONEncoder().encode(self) else {
            throw DropError(.disk, "the session cannot be written")
        }
        try folder.write(String(decoding: data, as: UTF8.self), to: Self.fileName)
    }

    /// - Throws: `data` if the record is missing or damaged.
    package static func read(from folder: TemporaryFolder) throws(DropError) -> SessionRecord {
        guard let text = folder.read(fileName),
            let record = try? JSONDecoder().decode(SessionRecord.self, from: Data(text.utf8)),
            record.secretBytes.count == DropSecret.byteCount
        else {
            throw DropError(.data, "\(folder.path) is not a kept session: start `receive` with --keep")
        }
        return record
    }
}
