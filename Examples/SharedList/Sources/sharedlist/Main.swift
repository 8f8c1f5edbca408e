import Foundation
import Loveseat
import SharedListKit

/// `sharedlist`: lists that several devices share, on a terminal.
@main
@MainActor
enum Main {
    static let usage = """
        Usage: sharedlist [FOLDER] [--interface ADDRESS] [--offline]

          FOLDER               where the lists are kept; the default is ~/.local/share/sharedlist
          --interface ADDRESS  the network interface or address to listen on; the default is all
          --offline            do not connect until `share`, `online`

        Type `help` on any screen. Input may also be piped in.
        """

    private static let isTerminal = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1

    static func main() async {
        // A reader that goes away, as `head` does, must not end the program before it has closed the database.
        signal(SIGPIPE, SIG_IGN)
        var arguments = Array(CommandLine.arguments.dropFirst())
        var interface: String?
        if let position = arguments.firstIndex(of: "--interface"), position + 1 < arguments.count {
            interface = arguments[position + 1]
            arguments.removeSubrange(position...position + 1)
        }
        let isOffline = arguments.contains("--offline")
        arguments.removeAll { $0 == "--offline" }
        guard arguments.count < 2, arguments.first?.hasPrefix("-") != true else {
            Swift.print(usage)
            exit(arguments.first == "--help" ? 0 : 64)
        }
        let support = FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask).first
        let folder =
            arguments.first.map { URL(filePath: $0) }
            ?? (support ?? .homeDirectory).appending(path: "sharedlist")
        do { try await run(folder, interface, isOffline: isOffline) } catch LoveseatError.Code.busy {
            fail("the lists in \(folder.path) are open in another program: close it, or name another folder")
        } catch { fail((error as? LoveseatError)?.message ?? "\(error)") }
    }

    private static func fail(_ message: String) {
        FileHandle.standardError.write(Data("sharedlist: \(message)\n".utf8))
        exit(74)
    }

    private static func run(_ folder: URL, _ interface: String?, isOffline: Bool) async throws {
        let store = try await ListStore.open(folder: folder)
        let sharing = try SharingModel(store, networkInterface: interface)
        let screen = Screen(ListsModel(store), sharing)
        if !isOffline { await sharing.goOnline() }
        // What arrives is shown at once; a program that reads our output asks for it with an empty line.
        let drawing = isTerminal ? Task { await draw(screen) } : nil
        await watch(for: .seconds(5)) { !screen.isLoading }
        print(screen.show())
        for await line in lines() {
            let before = screen.text
            guard await screen.perform(line) else { break }
            // The screen follows the database, a moment later.
            if !line.isEmpty {
                await watch(for: .milliseconds(500)) { screen.text != before && !screen.isLoading }
            }
            print(screen.show())
        }
        drawing?.cancel()
        await sharing.goOffline()
        try await store.close()
    }

    /// Prints the screen whenever it changes.
    private static func draw(_ screen: Screen) async {
        while !Task.isCancelled {
            let shown = screen.text
            await watch(for: .seconds(3_600)) { screen.text != shown }
            if !Task.isCancelled { print(screen.show()) }
        }
    }

    private static func print(_ screen: String) {
        // On a terminal the screen is cleared. Ctrl-R shows again what was being typed.
        let text = (isTerminal ? "\u{1B}[2J\u{1B}[H" : "") + screen + "> "
        try? FileHandle.standardOutput.write(contentsOf: Data(text.utf8))
    }

    /// The lines of standard input, read on a thread of their own.
    private static func lines() -> AsyncStream<String> {
        let (lines, continuation) = AsyncStream.makeStream(of: String.self)
        Thread.detachNewThread {
            while let line = readLine() { continuation.yield(line.trimmingCharacters(in: .whitespaces)) }
            continuation.finish()
        }
        return lines
    }
}
