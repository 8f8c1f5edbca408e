import Crypto
import CryptoExtras
import Foundation
import LoveseatModel
import NIOConcurrencyHelpers

/// Proof that a client knows a pairing secret, without sending it.
///
/// `HMAC-SHA256(scrypt(secret, nonce), "loveseat pairing 1" + nonce + listener's fingerprint + client's fingerprint)`. Both
/// certificates are in it, so nobody in the middle can pass it on; and trying all six-digit codes takes longer than a code
/// lives, since each costs a round of scrypt and the nonce is the client's.
struct PairingProof: Hashable {
    private static let prefix = "pair-"
    /// 16 MB and about 50 ms a try.
    private static let rounds = 1 << 14

    let nonce: String
    let password: String

    init(secret: String, nonce: String, listener: String, client: String) throws {
        self.nonce = nonce
        let key = try KDF.Scrypt.deriveKey(
            from: Data(secret.utf8),
            salt: Data(nonce.utf8),
            outputByteCount: 32,
            rounds: Self.rounds,
            blockSize: 8,
            parallelism: 1
        )
        let text = "loveseat pairing 1\n\(nonce)\n\(listener)\n\(client)"
        let code = HMAC<SHA256>.authenticationCode(for: Data(text.utf8), using: key)
        password = Base64.encode(Array(code))
    }

    static func newNonce() -> String {
        (0..<32).map { _ in String(UInt8.random(in: 0...15), radix: 16) }.joined()
    }

    /// Under which name it is sent (HTTP Basic).
    var username: String { Self.prefix + nonce }

    /// The nonce of a name; nil for other names.
    static func nonce(of username: String) -> String? {
        guard username.hasPrefix(prefix) else { return nil }
        let nonce = username.dropFirst(prefix.count)
        return nonce.utf8.count == 32 ? String(nonce) : nil
    }
}

/// The certificate that was seen last.
final class SeenCertificate: Sendable {
    private let seen = NIOLockedValueBox<TLSCertificate?>(nil)
    var certificate: TLSCertificate? { seen.withLockedValue { $0 } }
    func note(_ certificate: TLSCertificate) { seen.withLockedValue { $0 = certificate } }
}
