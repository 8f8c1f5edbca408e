import ArgumentParser
import Foundation
import Loveseat

/// The parser's errors, written as all others are.
enum ArgumentErrors {
    /// Joins `--limit` and `-1` to `--limit=-1`. The parser would take the number for an option, and say that the value is missing.
    static func joiningNegatives(in arguments: some Sequence<String>) -> [String] {
        var joined: [String] = []
        var isBehindOptions = false
        for argument in arguments {
            isBehindOptions = isBehindOptions || argument.isExactly("--")
            let bytes = Array(argument.utf8.prefix(2))
            let isNegative =
                bytes.count == 2 && bytes[0] == UInt8(ascii: "-")
                && (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(bytes[1])
            if isNegative, !isBehindOptions, let option = joined.last, option.hasPrefix("--"),
                !option.contains("=")
            {
                joined[joined.count - 1] = "\(option)=\(argument)"
            } else {
                joined.append(argument)
            }
        }
        return joined
    }

    /// The error in one line.
    static func sentence(for error: any Error) -> String {
        let lines = LoveseatCommand.message(for: error).split(whereSeparator: \.isNewline)
        var text = lines.map { $0.trimmingCharacters(in: .whitespaces) }.joined(separator: " ")
        if text.hasSuffix(".") { text.removeLast() }
        // Abbreviations stay as they are.
        let isWord = text.dropFirst().first.map { $0.isLowercase || $0 == " " } ?? false
        return isWord ? text.prefix(1).lowercased() + text.dropFirst() : text
    }

    /// The lines for standard error: how the command is used, and last the error, with the command that explains its options.
    static func text(for error: any Error) -> String {
        let full = LoveseatCommand.fullMessage(for: error)
        let sentence = sentence(for: error)
        // Without any argument, the whole help is printed.
        guard !sentence.isEmpty else { return full + "\n" }
        let usage = full.split(separator: "\n").drop { !$0.hasPrefix("Help:") && !$0.hasPrefix("Usage:") }
        let help = full.firstMatch(of: #/See '(.+)' for more information/#).map { ": see `\($0.1)`" } ?? ""
        let lines = usage.filter { $0.firstMatch(of: #/^ *See '/#) == nil }.map { String($0).printable }
        return (lines + ["loveseat: \(sentence.printable)\(help)"]).joined(separator: "\n") + "\n"
    }
}
