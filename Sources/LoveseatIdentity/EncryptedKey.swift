private import Crypto
import CryptoExtras
import Foundation
import LoveseatModel
private import NIOSSL
import SwiftASN1
import X509

/// Private keys under a passphrase: PKCS#8 with PBES2 (RFC 8018), PBKDF2 with HMAC-SHA-256 and AES-256-CBC, which
/// OpenSSL reads too.
enum EncryptedKey {
    static let discriminator = "ENCRYPTED PRIVATE KEY"
    private static let rounds = 600_000

    static func seal(_ key: X509.Certificate.PrivateKey, passphrase: String) throws -> PEMDocument {
        guard !passphrase.isEmpty else { throw LoveseatError(.crypto, "the passphrase is empty") }
        let salt = (0..<16).map { _ in UInt8.random(in: 0...255) }
        let vector = AES._CBC.IV()
        let secret = try KDF.Insecure.PBKDF2.deriveKey(
            from: Data(passphrase.utf8),
            salt: salt,
            using: .sha256,
            outputByteCount: 32,
            rounds: rounds
        )
        let sealed = try AES._CBC.encrypt(try key.pkcs8(), using: secret, iv: vector)
        var serializer = DER.Serializer()
        try serializer.appendConstructedNode(identifier: .sequence) { info in
            try info.appendConstructedNode(identifier: .sequence) { algorithm in
                try algorithm.serialize(Algorithm.pbes2)
                try algorithm.appendConstructedNode(identifier: .sequence) { parameters in
                    try derivation(salt, into: &parameters)
                    try parameters.appendConstructedNode(identifier: .sequence) { cipher in
                        try cipher.serialize(Algorithm.aes256CBC)
                        try cipher.serialize(ASN1OctetString(contentBytes: Array(vector)[...]))
                    }
                }
            }
            try info.serialize(ASN1OctetString(contentBytes: Array(sealed)[...]))
        }
        return PEMDocument(type: discriminator, derBytes: serializer.serializedBytes)
    }

    private static func derivation(_ salt: [UInt8], into parameters: inout DER.Serializer) throws {
        try parameters.appendConstructedNode(identifier: .sequence) { derivation in
            try derivation.serialize(Algorithm.pbkdf2)
            try derivation.appendConstructedNode(identifier: .sequence) { pbkdf2 in
                try pbkdf2.serialize(ASN1OctetString(contentBytes: salt[...]))
                try pbkdf2.serialize(rounds)
                try pbkdf2.appendConstructedNode(identifier: .sequence) { function in
                    try function.serialize(Algorithm.hmacWithSHA256)
                    try function.serialize(ASN1Null())
                }
            }
        }
    }

    /// Decrypts a key of this or another program.
    static func open(_ derBytes: [UInt8], passphrase: String?) throws -> X509.Certificate.PrivateKey {
        guard let passphrase, !passphrase.isEmpty else {
            throw LoveseatError(.crypto, "the private key is encrypted: give its passphrase")
        }
        let pem = PEMDocument(type: discriminator, derBytes: derBytes).pemString
        do {
            let key = try NIOSSLPrivateKey(bytes: Array(pem.utf8), format: .pem) { setter in
                setter(passphrase.utf8)
            }
            return try X509.Certificate.PrivateKey(anyDER: key.derBytes)
        } catch {
            throw LoveseatError(.crypto, "the passphrase of the private key is wrong, or the key is damaged")
        }
    }

    private enum Algorithm {
        static let pbes2: ASN1ObjectIdentifier = [1, 2, 840, 113549, 1, 5, 13]
        static let pbkdf2: ASN1ObjectIdentifier = [1, 2, 840, 113549, 1, 5, 12]
        static let hmacWithSHA256: ASN1ObjectIdentifier = [1, 2, 840, 113549, 2, 9]
        static let aes256CBC: ASN1ObjectIdentifier = [2, 16, 840, 1, 101, 3, 4, 1, 42]
    }
}
