import ArgumentParser
import Foundation
import Loveseat
import PhotoDropCore
import PhotoDropKit

struct Receive: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show a QR code, and save the photos that other devices send.",
        discussion: """
            Prints the code's text on standard output, and then a line for each photo that is saved. The QR code, the \
            address of the page and remarks are printed on standard error.

            The session ends after --count photos, after --for seconds without a connection, or on Ctrl-C. The code is \
            then void.
            """
    )

    @Argument(
        help: "The folder to save to. It is created if it does not exist. The default is photos-DATE-TIME."
    )
    var folder: String?
    @Option(help: "The port to listen on; 0 for a free one.")
    var port: UInt16 = 0
    @Option(help: "The network interface or address to listen on. The default is all.")
    var interface: String?
    @Option(help: "The name that senders see. The default is the name of this computer.")
    var name: String?
    @Option(help: "The port of the page on this computer; 0 for a free one.")
    var webPort: UInt16 = 0
    @Flag(name: .customLong("no-web"), help: "Do not serve a page.")
    var hasNoPage = false
    @Flag(help: "Open the page in a browser.")
    var open = false
    @Flag(help: "Keep the session's folder, so that the session can be resumed with --resume.")
    var keep = false
    @Option(help: "Resume the session in this folder, with the same code if its port is free.")
    var resume: String?
    @Option(help: "End after so many photos.")
    var count: Int?
    @Option(name: .customLong("for"), help: "End after so many seconds without a connection.")
    var idleSeconds = 900.0
    @Option(help: "How many senders may be connected at once. 1 reserves the session for the first one.")
    var senders = 8
    @Option(help: "The largest photo to accept, in MB.")
    var maxPhoto: UInt64 = 200
    @Option(help: "The space to leave free on the disk of the session's folder, in MB.")
    var minFree: UInt64 = 500
    @Flag(help: "Remove GPS positions and other metadata from JPEG and PNG files. Other types are not saved.")
    var strip = false
    @Flag(help: "Print events as lines of JSON.")
    var json = false
    @Flag(help: "Do not show the QR code, and print no remarks.")
    var quiet = false

    func validate() throws {
        guard count ?? 1 > 0 else { throw ValidationError("--count must be at least 1.") }
        guard idleSeconds > 0 else { throw ValidationError("--for must be more than 0.") }
        guard (1...1_000).contains(senders) else { throw ValidationError("--senders must be 1 to 1000.") }
        guard (1...4_000).contains(maxPhoto) else { throw ValidationError("--max-photo must be 1 to 4000.") }
        guard resume == nil || folder == nil else {
            throw ValidationError("--resume uses the session's folder: leave out FOLDER.")
        }
        guard !hasNoPage || !open else { throw ValidationError("Use one of --open and --no-web.") }
    }

    private var options: ReceiverOptions {
        var options = ReceiverOptions(folder: folder ?? Self.defaultFolder)
        options.port = port
        options.interface = interface
        options.name = name ?? HostName.short
        options.count = count
        options.idleSeconds = idleSeconds
        options.maximumSenders = senders
        options.strips = strip
        options.keeps = keep || resume != nil
        options.limits.photoBytes = maxPhoto << 20
        options.limits.freeBytes = minFree << 20
        return options
    }

    private static var defaultFolder: String {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.dateFormat = "yyyy-MM-dd-HHmmss"
        return "photos-\(formatter.string(from: Date()))"
    }

    func run() async throws {
        let (receiver, code) = try await start()
        Signals.onInterrupt { receiver.stop() }
        let (missed, events) = receiver.hub.subscribe(after: 0, maximumWaiting: nil)
        let web: (server: WebServer, address: String)?
        do {
            web = try await startPage(receiver, code)
            try show(code, receiver, page: web?.address)
        } catch {
            await receiver.cancel()
            throw error
        }
        let printing = Task {
            for entry in missed { try print(entry.event) }
            for await entry in events { try print(entry.event) }
        }
        let end = try await receiver.run()
        try? await printing.value
        // The page hears of the end before the server goes.
        await web?.server.stop()
        if end == .guessing { remark("photodrop: somebody was guessing at the code: the session has ended") }
        if options.keeps { remark("photodrop: resume with --resume \(receiver.sessionFolder)") }
        let saved = await receiver.saver.savedCount
        remark("photodrop: \(saved) \(saved == 1 ? "photo is" : "photos are") in \(receiver.folder)")
        let failures = await receiver.saver.failureCount
        guard failures == 0 else {
            throw DropError(.partial, "\(failures) photos could not be saved")
        }
    }

    /// Starts a session. One that is resumed gets another port if its own is in use.
    private func start() async throws -> (Receiver, DropCode) {
        let receiver = try Receiver(options, resuming: resume)
        do { return (receiver, try await receiver.start()) } catch {
            await receiver.cancel()
            let isInUse = LoveseatError.Code(Int(EADDRINUSE), domain: .posix) ~= error
            guard isInUse, let resume, port == 0 else { throw error }
            var options = self.options
            options.usesEarlierPort = false
            let other = try Receiver(options, resuming: resume)
            do {
                let code = try await other.start()
                remark("photodrop: the port of this session is in use: its code has changed")
                return (other, code)
            } catch {
                await other.cancel()
                throw error
            }
        }
    }

    private func startPage(_ receiver: Receiver, _ code: DropCode) async throws -> (
        server: WebServer, address: String
    )? {
        guard !hasNoPage else { return nil }
        let page = ReceivePage(
            receiver,
            code: code,
            thumbnails: ThumbnailMaker(folder: receiver.sessionFolder)
        )
        let server = WebServer { try await page.respond($0) }
        let address = try await server.start(port: Int(webPort))
        if open { Browser.open(address) }
        return (server, address)
    }

    private func show(_ code: DropCode, _ receiver: Receiver, page: String?) throws {
        let compact = code.compactText(secret: receiver.record.secret)
        if json {
            var line: JSONObject = ["event": "code", "text": .string(code.text)]
            if let compact { line["compact"] = .string(compact) }
            if let page { line["page"] = .string(page) }
            line["folder"] = .string(receiver.folder)
            if options.keeps { line["session"] = .string(receiver.sessionFolder) }
            try Output.line(line)
        } else {
            try Output.line(code.text)
        }
        guard !quiet else { return }
        if Terminal.isPresent {
            let rendered = try TerminalCode(full: code.text, compact: compact, in: Terminal.capabilities)
            if let rendered {
                Output.remark(raw: rendered.lines.joined(separator: "\n") + "\n")
            } else {
                remark("photodrop: the window is too small for the QR code: use the page, or the text above")
            }
        }
        if let page { remark("photodrop: the code and the photos: \(page)") }
    }

    private func print(_ event: DropEvent) throws {
        if case .saved(let photo) = event, photo.isRestored { return }
        guard !json else {
            var line = event.json
            line["event"] = .string(Self.name(of: event))
            return try Output.line(line)
        }
        switch event {
        case .saved(let photo):
            let sender = photo.senderName ?? photo.sender?.text ?? "an unknown sender"
            let note = photo.isDuplicate ? " (it was there already)" : ""
            try Output.line("saved \(photo.file) (\(ByteText.text(photo.size))) from \(sender)\(note)")
        case .failed(_, let name, let error): try Output.line("failed \(name): \(error)")
        case .end(let reason): remark("photodrop: \(reason)")
        case .sender, .progress, .gone, .remark: break
        }
    }

    private static func name(of event: DropEvent) -> String {
        if case .saved = event { return "saved" }
        return event.name
    }

    private func remark(_ text: String) { if !quiet { Output.remark(text) } }
}

/// The browser of the desktop.
enum Browser {
    static func open(_ address: String) {
        guard let program = Programs.path(of: "xdg-open") ?? Programs.path(of: "open") else {
            return Output.remark("photodrop: there is no xdg-open: open the page yourself")
        }
        Task { _ = await Programs.run(program, [address]) }
    }
}
