/// Keys as JSON pointers write them (RFC 6901): `~0` for a tilde, `~1` for a slash. Everything else stays as it is, to the byte.
package enum JSONPointer {
    package static func escaped(_ key: String) -> String {
        guard key.utf8.contains(where: { $0 == UInt8(ascii: "~") || $0 == UInt8(ascii: "/") }) else {
            return key
        }
        var bytes: [UInt8] = []
        for byte in key.utf8 {
            switch byte {
            case UInt8(ascii: "~"): bytes += "~0".utf8
            case UInt8(ascii: "/"): bytes += "~1".utf8
            default: bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    package static func unescaped(_ part: String) -> String {
        guard part.utf8.contains(UInt8(ascii: "~")) else { return part }
        var bytes: [UInt8] = []
        var rest = Array(part.utf8)[...]
        while let byte = rest.popFirst() {
            switch (byte, rest.first) {
            case (UInt8(ascii: "~"), UInt8(ascii: "0")?):
                bytes.append(UInt8(ascii: "~"))
                rest.removeFirst()
            case (UInt8(ascii: "~"), UInt8(ascii: "1")?):
                bytes.append(UInt8(ascii: "/"))
                rest.removeFirst()
            default: bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
