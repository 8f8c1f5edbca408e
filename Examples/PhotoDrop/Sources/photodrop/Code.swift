import ArgumentParser
import Foundation
import Loveseat
import PhotoDropCore
import PhotoDropKit

struct Code: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Read the text of a code, or show it as a QR code.",
        subcommands: [CodeShow.self, CodeRead.self]
    )
}

struct CodeShow: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show a code's text as a QR code."
    )

    enum Format: String, ExpressibleByArgument, CaseIterable {
        case blocks, hashes, svg
    }

    @Argument(help: "The text of the code.")
    var text: String
    @Option(help: "Half blocks, # signs, or an SVG picture: blocks, hashes or svg.")
    var format = Format.blocks

    func run() async throws {
        _ = try DropCode(text: text)
        let code = try QRCode(text, level: format == .svg ? .medium : .low)
        switch format {
        case .blocks:
            try Output.picture(TerminalCode.halfBlocks(code, quietZone: 4))
        case .hashes:
            try Output.picture(TerminalCode.hashes(code, quietZone: 4))
        case .svg: try Output.picture([code.svg()])
        }
    }
}

struct CodeRead: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "read",
        abstract: "Print the parts of a code's text as JSON, without the secret."
    )

    @Argument(help: "The text of the code.")
    var text: String

    func run() async throws {
        let code = try DropCode(text: text)
        var json: JSONObject = [
            "urls": .array(code.urls.map { .string($0.absoluteString) }),
            "pin": .string(TextCoding.hexadecimal(code.pin.bytes)),
        ]
        if let session = code.session { json["session"] = .string(session) }
        if let name = code.name { json["name"] = .string(name) }
        try Output.line(json)
    }
}
