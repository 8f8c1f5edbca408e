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
    /// The session's settings; nil in a record that does not have them.
    package var options: ReceiverOptions?

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

    /// Reads the record of a kept session.
    ///
    /// - Parameter path: The session's folder.
    /// - Returns: The record.
    /// - Throws: `notFound` if there is no such folder, `data` if the record is missing or damaged.
    package static func read(at path: String) throws(DropError) -> SessionRecord {
        guard FileManager.default.fileExists(atPath: path) else {
            throw DropError(.notFound, "there is no session at \(path)")
        }
        guard let text = try? String(contentsOfFile: "\(path)/\(fileName)", encoding: .utf8),
            let record = try? JSONDecoder().decode(SessionRecord.self, from: Data(text.utf8)),
            record.secretBytes.count == DropSecret.byteCount
        else {
            throw DropError(.data, "\(path) is not a kept session: start `receive` with --keep")
        }
        return record
    }

    /// Reads the settings that a kept session had, to resume it with them.
    ///
    /// - Parameter path: The session's folder.
    /// - Returns: The settings, with the session's folder of photos.
    /// - Throws: As ``read(at:)``.
    package static func options(at path: String) throws(DropError) -> ReceiverOptions {
        let record = try read(at: path)
        var options = record.options ?? ReceiverOptions(folder: record.folder)
        guard options.isPossible else {
            throw DropError(.data, "the settings in \(path)/\(fileName) are damaged")
        }
        options.folder = record.folder
        return options
    }
}
