/// The secret of a session, which its code contains.
///
/// The full form of a code has all 128 bits, the compact form the first 100. The receiver accepts either.
package struct DropSecret: Hashable, Sendable {
    package static let byteCount = 16

    package let bytes: [UInt8]

    /// Creates a secret from random bytes.
    package init(bytes: [UInt8]) { self.bytes = bytes }

    /// 22 characters of Base64url.
    package var full: String { TextCoding.base64URL(bytes) }

    /// 20 characters of Base32: the first 100 bits.
    package var compact: String { String(Base32.encode(bytes.prefix(13)).prefix(20)) }
}

/// The leading bits of the SHA-256 fingerprint of a receiver's certificate: all 256, or 160 in a compact code.
package struct DropPin: Hashable, Sendable {
    private static let compactBytes = 20
    private static let fullBytes = 32

    package let bytes: [UInt8]

    /// Creates a pin from 20 or 32 bytes; nil for any other number.
    package init?(bytes: [UInt8]) {
        guard [Self.compactBytes, Self.fullBytes].contains(bytes.count) else { return nil }
        self.bytes = bytes
    }

    /// Creates a pin from the hexadecimal digits of a fingerprint.
    package init?(fingerprint: some StringProtocol) {
        guard let bytes = TextCoding.bytes(hexadecimal: fingerprint), bytes.count == Self.fullBytes else {
            return nil
        }
        self.bytes = bytes
    }

    /// Whether a certificate has this fingerprint, over all bits of the pin.
    package func matches(fingerprint: some StringProtocol) -> Bool {
        guard let other = TextCoding.bytes(hexadecimal: fingerprint), other.count == Self.fullBytes else {
            return false
        }
        return Array(other.prefix(bytes.count)) == bytes
    }

    /// 64 hexadecimal digits; nil for a pin of 160 bits.
    package var fingerprint: String? {
        bytes.count == Self.fullBytes ? TextCoding.hexadecimal(bytes) : nil
    }

    /// 32 characters of Base32.
    package var compact: String { Base32.encode(bytes.prefix(Self.compactBytes)) }
}
