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

            A session of --keep can be resumed with --resume: with the same code if its port is free, and with the options \
            that it had, except those that are given again. --identity, --open, --json and --quiet are not remembered.
            """
    )

    private static let warningInterval = Duration.seconds(10)
    private static let allInterfaces = "all"
    /// In seconds.
    private static let maximumIdle = 1e9
    /// In MB.
    private static let maximumFree: UInt64 = 1 << 40

    @Argument(
        help: "The folder to save to. It is created if it does not exist. The default is photos-DATE-TIME."
    )
    var folder: String?
    @Option(help: "The port to listen on. The default is a free one.")
    var port: UInt16?
    @Option(help: "The network interface or address to listen on; all for all of them, which is the default.")
    var interface: String?
    @Option(help: "The name that senders see. The default is the name of this computer.")
    var name: String?
    @Flag(inversion: .prefixedNo, help: "Serve a page on this computer. This is the default.")
    var web: Bool?
    @Option(help: "The port of the page; 0 for a free one, which is the default.")
    var webPort: UInt16?
    @Flag(
        inversion: .prefixedNo,
        help:
            "Serve the page to the network too, by HTTPS with the session's certificate: to browsers that have its address."
    )
    var webLan: Bool?
    @Flag(help: "Open the page in a browser.")
    var open = false
    @Flag(help: "Keep the session's folder, so that the session can be resumed with --resume.")
    var keep = false
    @Option(help: "Resume the session in this folder.")
    var resume: String?
    @Option(help: "End after so many photos.")
    var count: Int?
    @Option(
        name: .customLong("for"),
        help: "End after so many seconds without a connection. The default is 900."
    )
    var idleSeconds: Double?
    @Option(
        help:
            "How many senders may be connected at once. 1 reserves the session for the first one. The default is 8."
    )
    var senders: Int?
    @Option(help: "The largest photo to accept, in MB. The default is 200.")
    var maxPhoto: UInt64?
    @Option(help: "The space to leave free on the disk of the session's folder, in MB. The default is 500.")
    var minFree: UInt64?
    @Option(
        help:
            "The key and certificate to use instead of new ones: cert.pem:key.pem, both.pem, or file.p12 (PHOTODROP_IDENTITY_PASSWORD has its password)."
    )
    var identity: String?
    @Flag(
        inversion: .prefixedNo,
        help:
            "Let other devices find this one by its name (_photodrop._tcp). They still need the code to send."
    )
    var advertise: Bool?
    @Flag(
        inversion: .prefixedNo,
        help: "Serve CouchDB's protocol too, on the same port, for PouchDB and the original PhotoDrop."
    )
    var couch: Bool?
    @Option(help: "The origin of a web page that may send by --couch, such as https://example.com.")
    var origin: [String] = []
    @Flag(
        inversion: .prefixedNo,
        help:
            "Encrypt connections, which is the default. --no-tls is for the original PhotoDrop, with --couch and --legacy-qr."
    )
    var tls: Bool?
    @Flag(
        inversion: .prefixedNo,
        help: "Show the code of the original PhotoDrop: a URL with a password. It needs --couch and --no-tls."
    )
    var legacyQr: Bool?
    @Flag(help: "Save the files as they were sent. This is the default.")
    var originals = false
    @Flag(help: "Remove GPS positions and other metadata from JPEG and PNG files. Other types are not saved.")
    var strip = false
    @Flag(
        inversion: .prefixedNo,
        help: "When a photo is removed on the page, move its file to the trash. Otherwise files stay."
    )
    var deleteFiles: Bool?
    @Flag(
        inversion: .prefixedNo,
        help:
            "Let senders recall what they have sent: the photo goes from the session, and its file from the folder if nobody changed it."
    )
    var allowRecall: Bool?
    @Flag(help: "Print events as lines of JSON.")
    var json = false
    @Flag(help: "Do not show the QR code, and print no remarks.")
    var quiet = false

    func validate() throws {
        guard count ?? 1 > 0 else { throw ValidationError("--count must be at least 1.") }
        guard idleSeconds.map({ $0 > 0 && $0 <= Self.maximumIdle }) ?? true else {
            throw ValidationError("--for must be more than 0, and at most \(Int(Self.maximumIdle)).")
        }
        guard (1...1_000).contains(senders ?? 1) else {
            throw ValidationError("--senders must be 1 to 1000.")
        }
        guard (1...4_000).contains(maxPhoto ?? 1) else {
            throw ValidationError("--max-photo must be 1 to 4000.")
        }
        guard minFree ?? 0 <= Self.maximumFree else {
            throw ValidationError("--min-free must be at most \(Self.maximumFree).")
        }
        guard resume == nil || folder == nil else {
            throw ValidationError("--resume uses the session's folder: leave out FOLDER.")
        }
        guard !originals || !strip else { throw ValidationError("Use one of --originals and --strip.") }
        guard resume == nil || identity == nil else {
            throw ValidationError("--resume uses the session's key: leave out --identity.")
        }
    }

    /// The settings of the session: those that it had, if it is resumed, and those that are given.
    private func settings() throws -> ReceiverOptions {
        var options: ReceiverOptions
        if let resume {
            options = try SessionRecord.options(at: resume)
        } else {
            options = ReceiverOptions(folder: folder ?? Self.defaultFolder)
            options.name = HostName.short
        }
        options.port = port ?? options.port
        options.name = name ?? options.name
        options.count = count ?? options.count
        options.idleSeconds = idleSeconds ?? options.idleSeconds
        options.maximumSenders = senders ?? options.maximumSenders
        options.strips = strip || options.strips && !originals
        options.deletesFiles = deleteFiles ?? options.deletesFiles
        options.allowsRecall = allowRecall ?? options.allowsRecall
        options.isAdvertised = advertise ?? options.isAdvertised
        options.keeps = keep || resume != nil
        if let interface { options.interface = interface == Self.allInterfaces ? nil : interface }
        if let maxPhoto { options.limits.photoBytes = maxPhoto << 20 }
        if let minFree { options.limits.freeBytes = minFree << 20 }
        if let identity {
            let password = ProcessInfo.processInfo.environment["PHOTODROP_IDENTITY_PASSWORD"]
            options.identity = try IdentityFile.read(identity, password: password)
        }
        try setPage(&options.page)
        try setCouchDB(&options)
        return options
    }

    private func setPage(_ page: inout PageOptions) throws(DropError) {
        page.isServed = web ?? page.isServed
        page.port = webPort ?? page.port
        page.isOnNetwork = webLan ?? (page.isOnNetwork && page.isServed)
        guard page.isServed || !open && !page.isOnNetwork else {
            throw DropError(.usage, "--open and --web-lan cannot be combined with --no-web")
        }
    }

    private func setCouchDB(_ options: inout ReceiverOptions) throws(DropError) {
        options.servesCouchDB = couch ?? options.servesCouchDB
        // A session that is resumed without it takes back what belongs to it.
        let isPlainByDefault = options.disablesTLS && couch != false
        options.origins = origin.isEmpty && options.servesCouchDB ? options.origins : origin
        let isPlain = tls.map { !$0 } ?? isPlainByDefault
        guard isPlain == legacyQr ?? isPlainByDefault else {
            throw DropError(
                .usage,
                "use --no-tls and --legacy-qr together, because other codes contain a certificate"
            )
        }
        options.disablesTLS = isPlain
        guard options.servesCouchDB || options.origins.isEmpty && !isPlain else {
            throw DropError(.usage, "--origin, --no-tls and --legacy-qr need --couch")
        }
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
        let warning = receiver.options.disablesTLS ? warn() : nil
        defer { warning?.cancel() }
        _ = try await receiver.run()
        try? await printing.value
        // The page hears of the end before the server goes.
        await web?.server.stop()
        if await receiver.stays { remark("photodrop: resume with --resume \(receiver.sessionFolder)") }
        let summary = await summary(of: receiver)
        remark("photodrop: \(summary)")
        let failures = await receiver.saver.failureCount
        guard failures == 0 else {
            throw DropError(
                .partial,
                "\(failures) \(failures == 1 ? "photo" : "photos") could not be saved, and \(failures == 1 ? "is" : "are") still in the session"
            )
        }
    }

    private func summary(of receiver: Receiver) async -> String {
        let (files, duplicates) = (await receiver.saver.fileCount, await receiver.saver.duplicateCount)
        let text = "\(files) \(files == 1 ? "photo is" : "photos are") in \(receiver.folder)"
        guard duplicates > 0 else { return text }
        return
            "\(text); \(duplicates) \(duplicates == 1 ? "duplicate was" : "duplicates were") not saved again"
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
        var options = try settings()
        let receiver = try Receiver(options, resuming: resume)
        do { return (receiver, try await ShownCode.start(receiver)) } catch {
            await receiver.cancel()
            guard Self.isError(error, EADDRINUSE), resume != nil, port ?? 0 == 0 else {
                throw Self.explained(error, receiver.options)
            }
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

    private static func isError(_ error: any Error, _ number: Int32) -> Bool {
        LoveseatError.Code(Int(number), domain: .posix) ~= error
    }

    /// Says what to do about an error of the listener.
    private static func explained(_ error: any Error, _ options: ReceiverOptions) -> any Error {
        if isError(error, EADDRINUSE) {
            return DropError(
                .usage,
                "port \(options.port) is in use: use another --port, or leave it out to use a free one"
            )
        }
        if isError(error, EADDRNOTAVAIL), let interface = options.interface {
            return DropError(
                .notFound,
                "this computer does not have the address \(interface): use another --interface"
            )
        }
        return error
    }

    private func startPage(_ receiver: Receiver, _ code: ShownCode) async throws -> (
        server: WebServer, address: String
    )? {
        guard receiver.options.page.isServed else { return nil }
        let page = ReceivePage(
            receiver,
            code: code.text,
            level: code.level,
            thumbnails: ThumbnailMaker(folder: receiver.sessionFolder)
        )
        let server = WebServer { try await page.respond($0) }
        let place: WebPlace
        if receiver.options.page.isOnNetwork {
            // The addresses; the name that an advertised session has belongs to one of them.
            let hosts = code.hosts.filter { !$0.hasSuffix(".local") }
            place = .network(hosts: hosts, identity: try receiver.identity())
            let fingerprint = code.fingerprint.map { ", whose SHA-256 is \($0)" } ?? ""
            remark("photodrop: browsers warn of the page's certificate\(fingerprint)")
        } else {
            place = .loopback
        }
        let address = try await server.start(port: Int(receiver.options.page.port), at: place)
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
        case .gone(_, let file):
            remark("photodrop: \(file ?? "a photo that was not saved") was removed from the session")
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
