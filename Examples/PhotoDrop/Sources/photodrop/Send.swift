import ArgumentParser
import Foundation
import Loveseat
import PhotoDropCore
import PhotoDropKit
import Synchronization

struct Send: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Send photos to the device that shows a code.",
        discussion: """
            CODE is the text of the code, @FILE or file:FILE for a file with it, or - for standard input, which other \
            users cannot see. With --qr, all arguments are photos. With --web, CODE may be left out: the page asks for it.

            Exits with 0 when the receiver has stored every photo.
            """
    )

    @Argument(help: "The code, and files and folders with photos.")
    var arguments: [String] = []
    @Option(help: "A picture with the QR code, instead of its text; - for standard input.")
    var qr: String?
    @Flag(help: "Choose the photos on a page in the browser.")
    var web = false
    @Option(help: "The port of the page; 0 for a free one.")
    var webPort: UInt16 = 0
    @Option(help: "The name that the receiver shows. The default is the name of this computer.")
    var name: String?
    @Flag(help: "Remove GPS positions and other metadata. Only JPEG and PNG files can be sent then.")
    var strip = false
    @Option(help: "Resize photos that are larger, so that they have at most so many pixels on each side.")
    var maxEdge: Int?
    @Option(help: "Give up when nothing has moved for so many seconds.")
    var wait = 600.0
    @Option(help: "The sender's ID, 16 hexadecimal digits. Use the one of an earlier run to continue it.")
    var sender: String?
    @Flag(
        help:
            "Accept the code of a receiver without encryption: http://USER:PASSWORD@HOST:PORT/DATABASE. Everybody on the network can read the photos."
    )
    var allowInsecure = false
    @Flag(help: "Print events as lines of JSON.")
    var json = false

    func validate() throws {
        guard wait > 0 else { throw ValidationError("--wait must be more than 0.") }
        guard maxEdge ?? 1 > 0 else { throw ValidationError("--max-edge must be at least 1.") }
        guard sender.map({ SenderID($0) != nil }) ?? true else {
            throw ValidationError("--sender must be 16 hexadecimal digits.")
        }
        guard !paths.isEmpty else { throw ValidationError("Name a code and at least one photo or folder.") }
    }

    func run() async throws {
        guard maxEdge == nil || Vips() != nil else {
            throw DropError(.usage, "--max-edge needs vipsthumbnail: install the package libvips-tools")
        }
        let code = isCodeMissing ? nil : try await readCode()
        let senderID =
            sender.flatMap { SenderID($0) } ?? SenderID(bytes: RandomBytes.make(SenderID.byteCount))
        let shelf = try PhotoShelf(sender: senderID)
        let work = Task { try await run(code, paths, shelf) }
        Signals.onInterrupt { work.cancel() }
        let result = await work.result
        await shelf.remove()
        if let signal = Signals.interruption, !web {
            if sender == nil { Output.remark("photodrop: to go on there, use --sender \(senderID.text)") }
            throw ExitCode(128 + signal)
        }
        try result.get()
    }

    private func run(_ code: ScannedCode?, _ paths: [String], _ shelf: PhotoShelf) async throws {
        var changes = PhotoShelf.Changes()
        changes.strips = strip
        changes.maximumEdge = maxEdge
        let (photos, refusals) = await shelf.add(FileFinder.expand(paths), changes)
        for refusal in refusals { try report(refusal) }
        guard !photos.isEmpty else {
            throw DropError(.partial, "there is no photo to send")
        }
        try Task.checkCancellation()
        let senderName = name ?? HostName.short
        guard !web, let code else { return try await choose(code, photos, shelf, senderName) }
        let target = try await code.findTarget()
        let sender = PhotoSender(target, shelf: shelf, senderName: senderName, patience: wait)
        let lines = ProgressLines(json: json)
        defer { lines.end() }
        let summary = try await sender.send(photos) { lines.show($0) }
        lines.end()
        if !json {
            let rate = "\(ByteText.text(summary.bytes)) in \((summary.seconds * 10).rounded() / 10) s"
            try Output.line("\(summary.stored) \(summary.stored == 1 ? "photo" : "photos"), \(rate)")
        }
        let failed = summary.failed + refusals.count
        guard failed == 0 else {
            throw DropError(.partial, "\(failed) of \(photos.count + refusals.count) photos were not sent")
        }
    }

    private func report(_ refusal: PhotoShelf.Refusal) throws {
        guard json else { return Output.remark("photodrop: \(refusal.name): \(refusal.reason)") }
        try Output.line(
            [
                "event": "photo", "name": .string(refusal.name), "state": "failed",
                "error": .string(refusal.reason),
            ]
        )
    }

    /// Whether the page has to ask for the code.
    private var isCodeMissing: Bool {
        guard web, qr == nil, let first = arguments.first else { return false }
        let beginnings = ["@", "file:", "photodrop:"]
        return first != "-" && !LegacyCode.isPlausible(first)
            && !beginnings.contains { first.lowercased().hasPrefix($0) }
    }

    /// The files and folders.
    private var paths: [String] {
        qr == nil && !isCodeMissing ? Array(arguments.dropFirst()) : arguments
    }

    private func readCode() async throws -> ScannedCode { try accepted(try await codeText()) }

    private func accepted(_ text: String) throws(DropError) -> ScannedCode {
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

    /// Serves a page on which photos are chosen, until it is finished.
    private func choose(
        _ code: ScannedCode?,
        _ photos: [PhotoDocument],
        _ shelf: PhotoShelf,
        _ senderName: String
    )
        async throws
    {
        let (ends, end) = AsyncStream<Void>.makeStream()
        let patience = wait
        let asJSON = json
        let known = EnteredCode(code)
        let page = SendPage(
            shelf,
            photos: photos,
            receiverName: code?.receiverName,
            needsCode: code == nil,
            setCode: { text in
                let entered = try accepted(text)
                known.set(entered)
                return entered.receiverName
            },
            send: { chosen, report in
                guard let code = known.code else { throw DropError(.usage, "there is no code") }
                let sender = PhotoSender(
                    try await code.findTarget(),
                    shelf: shelf,
                    senderName: senderName,
                    patience: patience
                )
                _ = try await sender.send(chosen) { event in
                    report(event)
                    if asJSON { try? Output.line(event.json) }
                }
            },
            onStop: { end.yield() }
        )
        let server = WebServer { try await page.respond($0) }
        let address = try await server.start(port: Int(webPort))
        if json {
            try Output.line(["event": "page", "page": .string(address)])
        } else {
            try Output.line(address)
            Output.remark("photodrop: choose the photos on that page")
        }
        for await _ in ends { break }
        await server.stop()
    }
}

/// The code that the page was given.
private final class EnteredCode: Sendable {
    private let entered: Mutex<ScannedCode?>

    init(_ code: ScannedCode?) { entered = Mutex(code) }

    var code: ScannedCode? { entered.withLock { $0 } }

    func set(_ code: ScannedCode) { entered.withLock { $0 = $0 ?? code } }
}

/// A code of either kind.
private enum ScannedCode: Sendable {
    case current(DropCode)
    case legacy(LegacyCode)

    init(text: String) throws(DropError) {
        let isLegacy = LegacyCode.isPlausible(text.trimmingCharacters(in: .whitespacesAndNewlines))
        self = isLegacy ? .legacy(try LegacyCode(text: text)) : .current(try DropCode(text: text))
    }

    var receiverName: String? {
        switch self {
        case .current(let code): code.name
        case .legacy(let code): code.url.host(percentEncoded: false)
        }
    }

    func findTarget() async throws(DropError) -> DropTarget {
        switch self {
        case .current(let code): try await DropTarget.find(code)
        case .legacy(let code): DropTarget(code)
        }
    }
}

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
