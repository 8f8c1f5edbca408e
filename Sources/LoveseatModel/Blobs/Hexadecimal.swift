/// Lower-case hexadecimal digits.
let hexadecimal = Array("0123456789abcdef".utf8)

extension Sequence<UInt8> {
    /// Two lower-case digits for each byte.
    package var hexadecimalText: String {
        var digits: [UInt8] = []
        digits.reserveCapacity(2 * underestimatedCount)
        for byte in self {
            digits.append(hexadecimal[Int(byte >> 4)])
            digits.append(hexadecimal[Int(byte & 15)])
        }
        return String(decoding: digits, as: UTF8.self)
    }
}
