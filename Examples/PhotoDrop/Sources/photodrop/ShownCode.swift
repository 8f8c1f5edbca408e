import Foundation
import PhotoDropCore
import PhotoDropKit

/// The code of a session that runs, as it is shown.
struct ShownCode {
    let text: String
    /// The form for small terminals; nil if there is none.
    let compact: String?
    /// The level of the page's QR code.
    let level: QRCode.Level
    /// The hosts of the receiver's URLs, as URLs have them.
    let hosts: [String]
    /// The fingerprint of the session's certificate; nil without encryption.
    let fingerprint: String?

    init(_ code: DropCode, of receiver: Receiver) {
        text = code.text
        compact = code.compactText(secret: receiver.record.secret)
        level = .medium
        hosts = code.hosts
        fingerprint = code.pin.fingerprint
    }

    init(_ code: LegacyCode) {
        text = code.text
        compact = nil
        level = .high
        hosts = [code.url.host(percentEncoded: true)].compactMap { $0 }
        fingerprint = nil
    }

    /// Starts a session, and returns its code.
    static func start(_ receiver: Receiver) async throws -> ShownCode {
        if receiver.options.disablesTLS { return ShownCode(try await receiver.startWithoutTLS()) }
        return ShownCode(try await receiver.start(), of: receiver)
    }
}
