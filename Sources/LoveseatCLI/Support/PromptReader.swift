import CLineEditor
import Foundation
import Loveseat

/// Lines from standard input: edited, with a history, if it is a terminal and libedit is there.
final class PromptReader {
    enum Line { case text(String), interrupted, end }

    /// The longest line of a script, in bytes.
    private static let longest = 4 << 20
    private static let linesRemembered: Int32 = 1_000

    let isTerminal = isatty(0) == 1
    private let isEdited: Bool
    private let history: String?
    private var buffer: [UInt8] = []
    private var hasEnded = false

    init() {
        isEdited = isTerminal && line_editor_open() == 1
        history = isEdited ? Self.historyFile() : nil
        if let history { line_editor_load(history, Self.linesRemembered) }
    }

    /// Sets the words that the Tab key completes.
    func complete(_ words: [String]) {
        if !isEdited { return }
        let copies = words.map { strdup($0) }
        defer { for copy in copies { free(copy) } }
        line_editor_complete(copies.map { UnsafePointer($0) }, copies.count)
    }

    /// Reads a line. The prompt is shown at a terminal only.
    func line(prompt: String) throws -> Line {
        guard isEdited else { return try plainLine(prompt) }
        let before = Signals.interrupts
        guard let line = line_editor_read(prompt) else {
            Output.remark(raw: "\n")
            return Signals.interrupts == before ? .end : .interrupted
        }
        defer { free(line) }
        return .text(String(cString: line))
    }

    /// Puts a statement into the history, on one line.
    func remember(_ text: String) {
        if !isEdited { return }
        line_editor_remember(text.split(whereSeparator: \.isNewline).joined(separator: " "))
    }

    /// Keeps the history for the next time.
    func close() {
        // Lines that are not edited have no history, nor have those of a user without a folder for it.
        guard let history else { return }
        let code = line_editor_save(history)
        if code != 0 {
            Output.remark("the history was not kept: \(history): \(String(cString: strerror(code)))")
        }
    }

    private func plainLine(_ prompt: String) throws -> Line {
        if isTerminal { Output.remark(raw: prompt) }
        let before = Signals.interrupts
        while true {
            if let end = buffer.firstIndex(of: UInt8(ascii: "\n")) {
                let line = buffer[..<end]
                defer { buffer.removeSubrange(...end) }
                return .text(try Self.text(line))
            }
            if hasEnded {
                guard !buffer.isEmpty else { return .end }
                defer { buffer = [] }
                return .text(try Self.text(buffer[...]))
            }
            guard buffer.count <= Self.longest else {
                throw LoveseatError(.invalidQuery, "it is longer than \(Self.longest) bytes")
            }
            var piece = [UInt8](repeating: 0, count: 64 << 10)
            let count = read(0, &piece, piece.count)
            if count < 0, errno == EINTR {
                if Signals.interrupts != before {
                    buffer = []
                    return .interrupted
                }
                continue
            }
            guard count >= 0 else {
                throw LoveseatError(.ioError, "cannot read: \(String(cString: strerror(errno)))")
            }
            hasEnded = count == 0
            buffer += piece[..<count]
        }
    }

    private static func text(_ line: ArraySlice<UInt8>) throws -> String {
        let line = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
        guard let text = String(validating: line, as: UTF8.self) else {
            throw LoveseatError(.invalidQuery, "it is not UTF-8")
        }
        return text
    }

    /// `loveseat/queries` in `$XDG_STATE_HOME` or `$HOME/.local/state`; nil if its folder cannot be made.
    private static func historyFile() -> String? {
        let environment = ProcessInfo.processInfo.environment
        let home = URL.userHome.appending(path: ".local/state")
        let state =
            environment["XDG_STATE_HOME"].flatMap { $0.hasPrefix("/") ? URL(filePath: $0) : nil } ?? home
        let folder = state.appending(path: "loveseat")
        let mode: [FileAttributeKey: Any] = [.posixPermissions: 0o700]
        do {
            try FileManager.default.createDirectory(
                at: folder,
                withIntermediateDirectories: true,
                attributes: mode
            )
        } catch { return nil }
        return folder.appending(path: "queries").path
    }
}
