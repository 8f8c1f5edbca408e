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

    private static let warningInterval = Duration.seconds(10)

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
    @Flag(
        help:
            "Serve the page to the network too, by HTTPS with the session's certificate: to browsers that have its address."
    )
    var webLan = false
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
    @Option(
        help:
            "The key and certificate to use instead of new ones: cert.pem:key.pem, both.pem, or file.p12 (PHOTODROP_IDENTITY_PASSWORD has its password)."
    )
    var identity: String?
    @Flag(
        help:
            "Let other devices find this one by its name (_photodrop._tcp). They still need the code to send."
    )
    var advertise = false
    @Flag(help: "Serve CouchDB's protocol too, on the same port, for PouchDB and the original PhotoDrop.")
    var couch = false
    @Option(help: "The origin of a web page that may send by --couch, such as https://example.com.")
    var origin: [String] = []
    @Flag(help: "Do not encrypt connections: with --couch and --legacy-qr, for the original PhotoDrop.")
    var noTls = false
    @Flag(
        help: "Show the code of the original PhotoDrop: a URL with a password. It needs --couch and --no-tls."
    )
    var legacyQr = false
    @Flag(help: "Save the files as they were sent. This is the default.")
    var originals = false
    @Flag(help: "Remove GPS positions and other metadata from JPEG and PNG files. Other types are not saved.")
    var strip = false
    @Flag(help: "When a photo is removed on the page, move its file to the trash. Otherwise files stay.")
    var deleteFiles = false
    @Flag(
        help:
            "Let senders take back what they have sent: the photo goes from the session, and its file from the folder if nobody changed it."
    )
    var allowRecall = false
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
        guard !hasNoPage || !open && !webLan else {
            throw ValidationError("--open and --web-lan cannot be combined with --no-web.")
        }
        guard couch || origin.isEmpty && !noTls && !legacyQr else {
            throw ValidationError("--origin, --no-tls and --legacy-qr need --couch.")
        }
        guard noTls == legacyQr else {
            throw ValidationError("Use --no-tls and --legacy-qr together: other codes contain a certificate.")
        }
        guard !originals || !strip else { throw ValidationError("Use one of --originals and --strip.") }
        guard resume == nil || identity == nil else {
            throw ValidationError("--resume uses the session's key: leave out --identity.")
        }
    }

    private func options() throws -> ReceiverOptions {
        var options = ReceiverOptions(folder: folder ?? Self.defaultFolder)
        options.port = port
        options.interface = interface
        options.name = name ?? HostName.short
        options.count = count
        options.idleSeconds = idleSeconds
        options.maximumSenders = senders
        options.strips = strip
        options.deletesFiles = deleteFiles
        options.allowsRecall = allowRecall
        options.isAdvertised = advertise
        options.servesCouchDB = couch
        options.origins = origin
        options.disablesTLS = noTls
        if let identity {
            let password = ProcessInfo.processInfo.environment["PHOTODROP_IDENTITY_PASSWORD"]
            options.identity = try IdentityFile.read(identity, password: password)
        }
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
        let warning = noTls ? warn() : nil
        defer { warning?.cancel() }
        let end = try await receiver.run()
        try? await printing.value
        // The page hears of the end before the server goes.
        await web?.server.stop()
        if end == .guessing { remark("photodrop: somebody was guessing at the code: the session has ended") }
        if receiver.options.keeps { remark("photodrop: resume with --resume \(receiver.sessionFolder)") }
        let saved = await receiver.saver.savedCount
        remark("photodrop: \(saved) \(saved == 1 ? "photo is" : "photos are") in \(receiver.folder)")
        let failures = await receiver.saver.failureCount
        guard failures == 0 else {
            throw DropError(.partial, "\(failures) photos could not be saved")
        }
    }

    /// Says again and again that nothing is encrypted.
    private func warn() -> Task<Void, Never> {
        Task {
            repeat {
                remark("photodrop: WARNING: without encryption, everybody on the network can read the photos")
            } while (try? await Task.sleep(for: Self.warningInterval)) != nil
        }
    }

    /// Starts a session. One that is resumed gets another port if its own is in use.
    private func start() async throws -> (Receiver, ShownCode) {
        let receiver = try Receiver(options(), resuming: resume)
        do { return (receiver, try await ShownCode.start(receiver)) } catch {
            await receiver.cancel()
            let isInUse = LoveseatError.Code(Int(EADDRINUSE), domain: .posix) ~= error
            guard isInUse, let resume, port == 0 else { throw error }
            var options = try options()
            options.usesEarlierPort = false
            let other = try Receiver(options, resuming: resume)
            do {
                let code = try await ShownCode.start(other)
                remark("photodrop: the port of this session is in use: its code has changed")
                return (other, code)
            } catch {
                await other.cancel()
                throw error
            }
        }
    }

    private func startPage(_ receiver: Receiver, _ code: ShownCode) async throws -> (
        server: WebServer, address: String
    )? {
        guard !hasNoPage else { return nil }
        let page = ReceivePage(
            receiver,
            code: code.text,
            level: code.level,
            thumbnails: ThumbnailMaker(folder: receiver.sessionFolder)
        )
        let server = WebServer { try await page.respond($0) }
        let place: WebPlace
        if webLan {
            // The addresses; the name that an advertised session has belongs to one of them.
            let hosts = code.hosts.filter { !$0.hasSuffix(".local") }
            place = .network(hosts: hosts, identity: try receiver.identity())
            let fingerprint = code.fingerprint.map { ", whose SHA-256 is \($0)" } ?? ""
            remark("photodrop: browsers warn of the page's certificate\(fingerprint)")
        } else {
            place = .loopback
        }
        let address = try await server.start(port: Int(webPort), at: place)
        if open { Browser.open(address) }
        return (server, address)
    }

    private func show(_ code: ShownCode, _ receiver: Receiver, page: String?) throws {
        if json {
            var line: JSONObject = ["event": "code", "text": .string(code.text)]
            if let compact = code.compact { line["compact"] = .string(compact) }
            if let page { line["page"] = .string(page) }
            line["folder"] = .string(receiver.folder)
            if receiver.options.keeps { line["session"] = .string(receiver.sessionFolder) }
            try Output.line(line)
        } else {
            try Output.line(code.text)
        }
        guard !quiet else { return }
        if Terminal.isPresent {
            let rendered = try TerminalCode(
                full: code.text,
                compact: code.compact,
                in: Terminal.capabilities
            )
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
        case .gone(let id): remark("photodrop: \(id) was removed from the session")
        case .end(let reason): remark("photodrop: \(reason)")
        case .sender, .progress, .remark: break
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
