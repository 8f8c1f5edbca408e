import ArgumentParser
import Foundation
import Loveseat

/// `loveseat`: databases from the command line.
struct LoveseatCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "loveseat",
        abstract: "JSON document databases that synchronise with each other, without a server in between.",
        discussion: """
            A database is the folder DB.loveseat; DB may include a path. Documents are in the default collection \
            unless --collection names another (scope.collection).

            EXAMPLES
              loveseat import cities cities.json --id-field code
              loveseat serve cities --port 55990 --user ana --password-file secret.txt
              loveseat create copy
              loveseat sync copy wss://192.168.1.7:55990/cities --user ana \\
                --pin FINGERPRINT --continuous

            EXIT CODES
              0 done · 1 some documents could not be replicated, or are in conflict with the peer's · 64 wrong usage · 65 bad input or data · 66 no such \
            database, collection, document, index, file or host · 69 the peer cannot be reached, or ended the connection · 70 a bug · 73 \
            it exists already, or the output file cannot be created · 74 the disk failed · 75 in use, try later · 76 the peer violated the protocol · 77 refused: \
            password, permission or certificate · 130 interrupted (SIGINT) or 143 terminated (SIGTERM) before it was \
            done. Commands that run until a signal (serve, serve-stdio, --continuous, --follow) exit with 0; a second \
            signal ends them at once with 130 or 143

            Shell completion: loveseat --generate-completion-script bash|zsh|fish
            """,
        version: "0.3.0",
        groupedSubcommands: [
            CommandGroup(
                name: "Databases",
                subcommands: [
                    Create.self, Info.self, Inspect.self, Import.self, Export.self, Compact.self, Check.self,
                    CollectionCommand.self,
                ]
            ),
            CommandGroup(
                name: "Documents",
                subcommands: [
                    List.self, Get.self, Put.self, Set.self, Remove.self, Purge.self, Revisions.self,
                    BlobCommand.self,
                    Changes.self,
                ]
            ),
            CommandGroup(
                name: "Queries",
                subcommands: [QueryCommand.self, SQLCommand.self, IndexCommand.self]
            ),
            CommandGroup(
                name: "Peers",
                subcommands: [
                    Serve.self, ServeStdio.self, Top.self, Browse.self, Push.self, Pull.self, Sync.self,
                    Pending.self,
                    Conflicts.self, Resolve.self, Why.self,
                    Identity.self, Pair.self,
                ]
            ),
        ]
    )
}

@main
enum Main {
    static func main() async {
        // A reader that goes away, as `head` does, ends a write with an error, not the process with a signal.
        signal(SIGPIPE, SIG_IGN)
        reserveStandardFiles()
        keepExamplesWhole()
        do {
            try refuseDamagedArguments()
            try LoveseatCommand.refuseUnknown(in: CommandLine.arguments.dropFirst())
            try SingleOptions.refuseRepeated(in: CommandLine.arguments.dropFirst())
            var command = try LoveseatCommand.parseAsRoot(
                ArgumentErrors.joiningNegatives(in: CommandLine.arguments.dropFirst())
            )
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
            try Output.standard.flush()
        } catch let error as LoveseatError {
            fail(error)
        } catch is Output.Gone {
            exit(0)
        } catch let interrupted as Interrupted {
            // As above.
            try? Output.standard.flush()
            exit(128 + interrupted.signal)
        } catch {
            if let error = LoveseatError(foreign: error) { fail(error) }
            let code = LoveseatCommand.exitCode(for: error)
            if !(error is ExitCode), code != .success {
                report(ArgumentErrors.sentence(for: error), code.rawValue)
            }
            // The reader of the output may be gone here too.
            try? Output.standard.flush()
            guard code == .validationFailure else { LoveseatCommand.exit(withError: error) }
            Output.remark(raw: ArgumentErrors.text(for: error))
            exit(code.rawValue)
        }
    }

    private static func fail(_ error: LoveseatError) -> Never {
        report(error.message, error.exitCode)
        // The reader of the output may be gone; the command's own error is what counts.
        try? Output.standard.flush()
        Output.remark("loveseat: \(error.message)")
        exit(error.exitCode)
    }

    /// Takes the numbers of standard input, output and error, where these are closed, with files that can be used for nothing. A database's
    /// file or a socket would get them otherwise, and with them what is printed.
    private static func reserveStandardFiles() {
        for number: Int32 in 0...2 where fcntl(number, F_GETFD) < 0 {
            // It gets the lowest number that is free.
            _ = open("/dev/null", number == 0 ? O_WRONLY : O_RDONLY)
        }
    }

    /// With `--json`, a command that fails before it has printed anything prints why.
    private static func report(_ message: String, _ code: Int32) {
        let arguments = CommandLine.arguments.prefix { $0 != "--" }
        if arguments.contains("--json"), Output.standard.isUnused {
            // The reader of the output may be gone; standard error says the same.
            try? Output.standard.line(["error": .string(message), "exitCode": JSONValue(Int(code))])
        }
    }

    /// Help is wrapped at the width of the terminal. Examples have at most 78 columns, and are wrapped by a narrower terminal itself, so
    /// that they can be copied.
    private static func keepExamplesWhole() {
        var size = winsize()
        let columns =
            ProcessInfo.processInfo.environment["COLUMNS"].flatMap { Int($0) }
            ?? (ioctl(1, UInt(TIOCGWINSZ), &size) == 0 ? Int(size.ws_col) : 80)
        if columns < 80 { setenv("COLUMNS", "80", 1) }
    }

    /// Swift repairs arguments that are not UTF-8, so that another text would be saved.
    private static func refuseDamagedArguments() throws {
        for (number, argument) in CommandLine.arguments.enumerated() {
            guard argument.unicodeScalars.contains("\u{FFFD}"), let given = CommandLine.unsafeArgv[number],
                String(validatingCString: given) == nil
            else { continue }
            throw LoveseatError(.invalidJSON, "argument \(number) is not UTF-8")
        }
    }
}
