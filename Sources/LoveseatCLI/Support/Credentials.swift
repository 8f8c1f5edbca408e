import ArgumentParser
import Foundation
import Loveseat

/// A user name with a password that is never on the command line, where others can read it.
struct Credentials: ParsableArguments {
    @Option(help: "The user's name.")
    var user: String?

    @Option(
        help: "A file with the password in its first line. Or set LOVESEAT_PASSWORD, or type it when asked."
    )
    var passwordFile: String?

    func password() throws -> String {
        if let passwordFile {
            guard let text = try? String(contentsOfFile: passwordFile, encoding: .utf8) else {
                throw LoveseatError(.cantOpenFile, "cannot read the password file \(passwordFile)")
            }
            return text.split(separator: "\n", omittingEmptySubsequences: false).first.map(String.init) ?? ""
        }
        if let password = ProcessInfo.processInfo.environment["LOVESEAT_PASSWORD"] { return password }
        guard isatty(0) == 1, let typed = getpass("Password for \(user ?? ""): ") else {
            throw LoveseatError(
                .invalidParameter,
                "there is no password: use --password-file or LOVESEAT_PASSWORD, or run at a terminal"
            )
        }
        return String(cString: typed)
    }

    func authenticator() throws -> BasicAuthenticator? {
        try user.map { BasicAuthenticator(username: $0, password: try password()) }
    }
}
