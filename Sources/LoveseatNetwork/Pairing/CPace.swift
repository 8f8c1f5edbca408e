package import Crypto
import Foundation

/// CPace over X25519 with SHA-512 (draft-irtf-cfrg-cpace): two sides that know the same short secret agree on a key, and
/// neither a listener nor a stranger that takes part learns more than whether one guess was right.
package struct CPace {
    /// The values that both sides know: the secret, a label, and the number that the first side chose for this exchange.
    package struct Session: Hashable {
        let secret: [UInt8]
        let label: [UInt8]
        let number: [UInt8]

        package init(secret: [UInt8], label: [UInt8], number: [UInt8]) {
            self.secret = secret
            self.label = label
            self.number = number
        }
    }

    /// One side's message, with its associated data, which are not sent: the certificate that the other side sees.
    package struct Message: Hashable {
        let share: [UInt8]
        let associated: [UInt8]

        package init(share: [UInt8], associated: [UInt8]) {
            self.share = share
            self.associated = associated
        }

        fileprivate var encoded: [UInt8] { CPace.concatenated(share, associated) }
    }

    private static let blockBytes = 128
    private static let name = Array("CPace255".utf8)

    private let session: Session
    private let scalar: Curve25519.KeyAgreement.PrivateKey
    /// The message to the other side.
    package let share: [UInt8]

    /// `scalar`: this side's secret, which is random but for test vectors.
    package init(_ session: Session, scalar: Curve25519.KeyAgreement.PrivateKey = .init()) throws {
        self.session = session
        self.scalar = scalar
        share = try Self.multiply(scalar, try Self.generator(session))
    }

    /// The key that both sides have if their secrets were the same. `first` is the message of the side that began.
    ///
    /// - Throws: an error if the other side's share is not usable, such as a point of low order.
    package func key(first: Message, second: Message) throws -> [UInt8] {
        let other = first.share == share ? second.share : first.share
        let point = try Self.multiply(scalar, other)
        let input =
            Self.concatenated(Self.name + Array("_ISK".utf8), session.number, point) + first.encoded
            + second.encoded
        return Array(SHA512.hash(data: input))
    }

    /// One side's proof that it has the key: a code over the message that it sent.
    package static func proof(_ key: [UInt8], _ session: Session, of message: Message) -> [UInt8] {
        Array(HMAC<SHA512>.authenticationCode(for: message.encoded, using: proofKey(key, session)))
    }

    /// Checks the other side's proof, in a time that does not depend on it.
    package static func isProof(_ proof: [UInt8], _ key: [UInt8], _ session: Session, of message: Message)
        -> Bool
    {
        HMAC<SHA512>
            .isValidAuthenticationCode(proof, authenticating: message.encoded, using: proofKey(key, session))
    }

    private static func proofKey(_ key: [UInt8], _ session: Session) -> SymmetricKey {
        SymmetricKey(data: Array(SHA512.hash(data: Array("CPaceMac".utf8) + session.number + key)))
    }

    package static func generator(_ session: Session) throws -> [UInt8] {
        let head = concatenated(name).count + concatenated(session.secret).count
        let padding = [UInt8](repeating: 0, count: max(0, blockBytes - 1 - head))
        let text = concatenated(name, session.secret, padding, session.label, session.number)
        guard let element = Field25519(bytes: Array(SHA512.hash(data: text).prefix(32))) else {
            throw CryptoKitError.incorrectParameterSize
        }
        return element.elligator.bytes
    }

    private static func multiply(_ scalar: Curve25519.KeyAgreement.PrivateKey, _ point: [UInt8]) throws
        -> [UInt8]
    {
        let point = try Curve25519.KeyAgreement.PublicKey(rawRepresentation: point)
        let product = try scalar.sharedSecretFromKeyAgreement(with: point).withUnsafeBytes { Array($0) }
        // A point of low order gives zero for every scalar, so its sender would know the key. Crypto does not check this.
        guard product.reduce(0, { $0 | $1 }) != 0 else { throw CryptoKitError.incorrectParameterSize }
        return product
    }

    /// Each part with its length in front, in groups of seven bits.
    private static func concatenated(_ parts: [UInt8]...) -> [UInt8] {
        parts.flatMap { part -> [UInt8] in
            var length = part.count
            var encoded: [UInt8] = []
            repeat {
                encoded.append(UInt8(length & 0x7F) | (length > 0x7F ? 0x80 : 0))
                length >>= 7
            } while length > 0
            return encoded + part
        }
    }
}
