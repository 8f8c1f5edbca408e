import ArgumentParser
import Foundation
import Loveseat

/// A user name with a password that is never on the command line, where others can read it.
struct Credentials: ParsableArguments {
    @Option(help: "The user's name.")
    var user: String?

    @Option(
        help:
            "A file with the password in its first line. Or set LOVESEAT_PASSWORD, or type the password when asked.",
        completion: .file()
    )
    var passwordFile: String?

    func validate() throws {
        guard passwordFile == nil || user != nil else {
            throw ValidationError("--password-file needs --user.")
        }
    }

    func password() throws -> String {
        if let password = try Secret.read(nil, file: passwordFile, variable: "LOVESEAT_PASSWORD") {
            return password
        }
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

/// Secrets that need not be on the command line, where other users can read them.
enum Secret {
    /// A value that is given, or in the first line of a file, or in an environment variable, in this order.
    static func read(_ given: String?, file: String?, variable: String) throws -> String? {
        if let given { return given }
        guard let file else { return ProcessInfo.processInfo.environment[variable] }
        return try text(of: file).split(separator: "\n", omittingEmptySubsequences: false).first.map {
            $0.hasSuffix("\r") ? String($0.dropLast()) : String($0)
        } ?? ""
    }

    /// The lines of a file, or else of an environment variable, empty ones left out.
    static func lines(file: String?, variable: String) throws -> [String] {
        let text = try file.map(text) ?? ProcessInfo.processInfo.environment[variable] ?? ""
        return text.split(whereSeparator: \.isNewline).map(String.init)
    }

    private static func text(of file: String) throws -> String {
        guard let text = String(bytes: try OptionFile.contents(file), encoding: .utf8) else {
            throw LoveseatError(.invalidJSON, "cannot read \(file): its text is not UTF-8")
        }
        return text
    }
}
