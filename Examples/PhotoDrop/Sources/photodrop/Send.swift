import ArgumentParser
import Foundation
import Loveseat
import PhotoDropCore
import PhotoDropKit
import Synchronization

struct Send: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Send photos and videos to the device that shows a code.",
        discussion: """
            CODE is the text of the code, @FILE or file:FILE for a file with it, or - for standard input, which other \
            users cannot see. With --qr, all arguments are photos. With --web, CODE may be left out: the page asks for it.

            Exits with 0 when the receiver has stored every photo.
            """
    )

    @OptionGroup var options: SenderOptions
    @Flag(help: "Choose the photos on a page in the browser.")
    var web = false
    @Option(help: "The port of the page; 0 for a free one.")
    var webPort: UInt16 = 0
    @Option(help: "The name that the receiver shows. The default is the name of this computer.")
    var name: String?

    func validate() throws {
        guard !paths.isEmpty else {
            throw ValidationError(
                web
                    ? "Name a folder whose photos the page shows, after the code if you have it."
                    : "Name a code and at least one photo or folder."
            )
        }
    }

    func run() async throws {
        try options.checkPrograms()
        let code = try await readCode()
        let senderID =
            options.sender.flatMap { SenderID($0) } ?? SenderID(bytes: RandomBytes.make(SenderID.byteCount))
        let shelf = try PhotoShelf(sender: senderID)
        let work = Task { try await run(code, paths, shelf) }
        Signals.onInterrupt { work.cancel() }
        let result = await work.result
        await shelf.remove()
        if let signal = Signals.interruption, !web {
            if options.sender == nil {
                Output.remark("photodrop: to go on there, use --sender \(senderID.text)")
            }
            throw ExitCode(128 + signal)
        }
        try result.get()
    }

    private func run(_ code: ScannedCode?, _ paths: [String], _ shelf: PhotoShelf) async throws {
        let (photos, refusals) = await shelf.add(FileFinder.expand(paths), options.changes)
        for refusal in refusals { try report(refusal) }
        guard !photos.isEmpty else { throw PhotoShelf.nothingToSend(refusals) }
        try Task.checkCancellation()
        if options.sender == nil, !options.json {
            Output.remark(
                "photodrop: this is sender \(shelf.sender.text), for --sender and `photodrop recall`"
            )
        }
        let senderName = name ?? HostName.short
        guard !web, let code else { return try await choose(code, photos, shelf, senderName) }
        let lines = ProgressLines(json: options.json)
        defer { lines.end() }
        let target = try await options.findTarget(code) { lines.show($0) }
        let sender = PhotoSender(target, shelf: shelf, senderName: senderName, patience: options.patience)
        let summary = try await sender.send(photos) { lines.show($0) }
        lines.end()
        if !options.json {
            let rate = "\(ByteText.text(summary.bytes)) in \((summary.seconds * 10).rounded() / 10) s"
            try Output.line("\(summary.stored) \(summary.stored == 1 ? "photo" : "photos"), \(rate)")
        }
        let failed = summary.failed + refusals.count
        guard failed == 0 else {
            throw DropError(.partial, "not sent: \(failed) of \(photos.count + refusals.count)")
        }
    }

    private func report(_ refusal: PhotoShelf.Refusal) throws {
        guard options.json else { return Output.remark("photodrop: \(refusal.name): \(refusal.reason)") }
        try Output.line(
            [
                "event": "photo", "name": .string(refusal.name), "state": "failed",
                "error": .string(refusal.reason),
            ]
        )
    }

    /// The code that was given; nil if the page asks for it.
    private func readCode() async throws -> ScannedCode? {
        guard !isCodeMissing else { return nil }
        return try await options.readCode()
    }

    /// Whether the page has to ask for the code.
    private var isCodeMissing: Bool { web && options.hasNoCode }

    /// The files and folders.
    private var paths: [String] {
        options.qr == nil && !isCodeMissing ? Array(options.arguments.dropFirst()) : options.arguments
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
        let options = options
        let known = EnteredCode(code)
        let page = SendPage(
            shelf,
            photos: photos,
            receiverName: code?.receiverName,
            needsCode: code == nil,
            setCode: { text in
                let entered = try options.accepted(text)
                known.set(entered)
                return entered.receiverName
            },
            send: { chosen, report in
                guard let code = known.code else { throw DropError(.usage, "there is no code") }
                let show: @Sendable (SendEvent) -> Void = { event in
                    report(event)
                    if options.json { try? Output.line(event.json) }
                }
                let sender = PhotoSender(
                    try await options.findTarget(code, report: show),
                    shelf: shelf,
                    senderName: senderName,
                    patience: options.patience
                )
                _ = try await sender.send(chosen, report: show)
            },
            onStop: { end.yield() }
        )
        let server = WebServer { try await page.respond($0) }
        let address = try await server.start(port: Int(webPort))
        if options.json {
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
