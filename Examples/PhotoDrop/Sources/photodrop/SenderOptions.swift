import ArgumentParser
import Foundation
import PhotoDropCore
import PhotoDropKit

/// The arguments of the commands that connect to a receiver.
struct SenderOptions: ParsableArguments {
    private static let defaultWait = 600.0

    @Argument(help: "The code, and files and folders with photos and videos.")
    var arguments: [String] = []
    @Option(help: "A picture with the QR code, instead of its text; - for standard input.")
    var qr: String?
    @Flag(help: "Remove GPS positions and other metadata. Only JPEG and PNG files can be sent then.")
    var strip = false
    @Option(help: "Resize photos that are larger, so that they have at most so many pixels on each side.")
    var maxEdge: Int?
    @Option(
        help:
            "Wait for the receiver until nothing has moved for so many seconds; 0 for as long as it takes. Without this option, the receiver has to be there at the start, and the limit is 600."
    )
    var wait: Double?
    @Option(
        help:
            "The sender's ID, 16 hexadecimal digits. Use the one of an earlier run to continue or to recall it."
    )
    var sender: String?
    @Flag(
        help:
            "Accept the code of a receiver without encryption: http://USER:PASSWORD@HOST:PORT/DATABASE. Everybody on the network can read the photos."
    )
    var allowInsecure = false
    @Flag(help: "Print events as lines of JSON.")
    var json = false

    func validate() throws {
        guard wait ?? 0 >= 0 else { throw ValidationError("--wait must be 0 or more.") }
        guard maxEdge ?? 1 > 0 else { throw ValidationError("--max-edge must be at least 1.") }
        guard sender.map({ SenderID($0) != nil }) ?? true else {
            throw ValidationError("--sender must be 16 hexadecimal digits.")
        }
    }

    /// How long nothing may move, in seconds.
    var patience: Double { wait.map { $0 == 0 ? .infinity : $0 } ?? Self.defaultWait }

    /// How to change the photos.
    var changes: PhotoShelf.Changes {
        var changes = PhotoShelf.Changes()
        changes.strips = strip
        changes.maximumEdge = maxEdge
        return changes
    }

    /// - Throws: `usage` if something is not installed that the options need.
    func checkPrograms() throws(DropError) {
        guard maxEdge == nil || Vips() != nil else {
            throw DropError(.usage, "--max-edge needs vipsthumbnail: install the package libvips-tools")
        }
    }

    /// Finds the receiver. With `--wait`, it need not be there yet.
    func findTarget(_ code: ScannedCode, report: @Sendable (SendEvent) -> Void) async throws(DropError)
        -> DropTarget
    {
        try await DropTarget.find(code, within: wait == nil ? 0 : patience, report: report)
    }

    // MARK: The code

    func readCode() async throws -> ScannedCode { try accepted(try await codeText()) }

    /// - Throws: `data` if the text is not a code, `usage` if it is one without encryption and that is not allowed.
    func accepted(_ text: String) throws(DropError) -> ScannedCode {
        let code = try ScannedCode(text: text)
        guard case .legacy = code, !allowInsecure else { return code }
        throw DropError(
            .usage,
            "with this code, everybody on the network can read the photos: add --allow-insecure to send them"
        )
    }

    private func codeText() async throws -> String {
        if let qr { return try await QRReader.text(in: qr) }
        let first = arguments.first ?? ""
        if first == "-" { return readLine() ?? "" }
        guard let prefix = ["@", "file:"].first(where: { first.hasPrefix($0) }) else { return first }
        let file = String(first.dropFirst(prefix.count))
        guard let text = try? String(contentsOfFile: file, encoding: .utf8) else {
            throw DropError(.notFound, "cannot read \(file)")
        }
        return text
    }

    /// Whether the first argument is not a code. Texts that are not codes at all count as files.
    var hasNoCode: Bool {
        guard qr == nil, let first = arguments.first else { return false }
        let beginnings = ["@", "file:", "photodrop:"]
        return first != "-" && !LegacyCode.isPlausible(first)
            && !beginnings.contains { first.lowercased().hasPrefix($0) }
    }
}
