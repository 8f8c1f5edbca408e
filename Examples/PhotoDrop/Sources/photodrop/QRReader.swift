import Foundation
import PhotoDropCore
import PhotoDropKit

/// Reads QR codes in pictures with zbarimg.
enum QRReader {
    private static let nothingFound: Int32 = 4

    static func text(in picture: String) async throws -> String {
        guard let program = Programs.path(of: "zbarimg") else {
            throw DropError(
                .usage,
                "reading pictures needs zbarimg: install the package zbar-tools, or give the text of the code"
            )
        }
        let file = picture == "-" ? "/dev/stdin" : picture
        guard access(file, R_OK) == 0 else { throw DropError(.notFound, "cannot read \(picture)") }
        let arguments = ["--raw", "-q", "-Sdisable", "-Sqrcode.enable", file]
        let result = await Programs.run(program, arguments, inheritsInput: picture == "-")
        guard let result, result.status == 0 || result.status == nothingFound else {
            throw DropError(.data, "\(picture) is not a picture that zbarimg can read")
        }
        let lines = String(decoding: result.output, as: UTF8.self).split(separator: "\n")
        let code = lines.first { $0.lowercased().hasPrefix("photodrop:") || LegacyCode.isPlausible($0) }
        guard let code else { throw DropError(.data, "this picture has no PhotoDrop code") }
        return String(code)
    }
}
