/// Lower-case hexadecimal digits.
let hexadecimal = Array("0123456789abcdef".utf8)

extension Sequence<UInt8> {
    /// Two lower-case digits for each byte.
    package var hexadecimalText: String {
        String(decoding: flatMap { [hexadecimal[Int($0 >> 4)], hexadecimal[Int($0 & 15)]] }, as: UTF8.self)
    }
}
