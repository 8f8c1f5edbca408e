import ArgumentParser
import Foundation
import Logging
import Loveseat
import PhotoDropCore
import PhotoDropKit

/// `photodrop`: sends photos to the device that shows a QR code.
struct PhotoDropCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "photodrop",
        abstract: "Send photos to the device that shows a QR code. Nothing else is set up.",
        discussion: """
            EXAMPLES
              photodrop receive ~/Pictures/trip        on one device: shows a QR code
              photodrop send 'CODE' *.jpg              on the other: the text of the code
              photodrop send --qr picture-of-the-code.jpg holidays/
              photodrop recall 'CODE' --sender ID a.jpg    takes a photo back, if the receiver allows it

            EXIT CODES
              0 all done · 1 some photos could not be sent, saved or recalled · 64 wrong usage · 65 not a code · 66 no such file · \
            69 the receiver cannot be reached, or has stopped · 74 the disk failed · 77 the code is wrong or used up, or nobody listens there any more · \
            130 interrupted (SIGINT) or 143 terminated (SIGTERM) before it was done
            """,
        version: "0.3.0",
        subcommands: [Receive.self, Send.self, RecallPhotos.self, Code.self, Draw.self]
    )
}

@main
enum Main {
    static func main() async {
        // A reader that goes away, as `head` does, ends a write with an error, not the process with a signal.
        signal(SIGPIPE, SIG_IGN)
        LoggingSystem.bootstrap { _ in SwiftLogNoOpLogHandler() }
        do {
            var command = try PhotoDropCommand.parseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch let error as DropError {
            Output.remark("photodrop: \(error.message)")
            exit(error.kind.rawValue)
        } catch let error as LoveseatError {
            Output.remark("photodrop: \(error.message)")
            exit(error.exitCode)
        } catch is Output.Gone {
            exit(0)
        } catch {
            PhotoDropCommand.exit(withError: error)
        }
    }
}

extension LoveseatError {
    /// The codes of sysexits.h.
    fileprivate var exitCode: Int32 {
        switch code {
        case .invalidParameter: DropError.Kind.usage.rawValue
        case .unknownHost, .notFound: DropError.Kind.notFound.rawValue
        case .httpAuthRequired, .httpForbidden: DropError.Kind.refused.rawValue
        case _ where code.domain == .posix && code.value == Int(EADDRINUSE): DropError.Kind.usage.rawValue
        default: DropError.Kind.disk.rawValue
        }
    }
}
