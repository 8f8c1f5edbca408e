import ArgumentParser
import Foundation
import Loveseat

struct Top: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show the peers of a running `serve` live: rates, and what is pending.",
        discussion: """
            Asks the process that serves the database once a second, until interrupted. The rates are those of the last second. \
            Pending are documents, as far as this side knows: what a peer has not announced is not known here.

            EXAMPLE
              loveseat top trips --once --pending
            """
    )
    @OptionGroup var argument: DatabaseArgument
    @Flag(help: "Show the peers once, and end.")
    var once = false
    @Flag(help: "List the documents that are pending at each peer, with the reasons.")
    var pending = false
    @Flag(help: "Print one JSON object per second, as /api/peers of the inspector has it.")
    var json = false

    func run() async throws {
        guard try argument.exists else {
            throw LoveseatError.absent("there is no database \(argument.database)", nearest: argument.nearest)
        }
        do { try await watch(ControlBackend(database: argument.database)) } catch is Interrupted {
            // It goes on until a signal.
        }
    }

    private func watch(_ backend: ControlBackend) async throws {
        let isOver = Signals.whenInterrupted()
        let isLive = !once && !json && isatty(1) == 1
        var number = 0
        while !isOver() {
            try Output.standard.checkReader()
            guard var report = try await backend.peers(after: number) else {
                throw LoveseatError(
                    .notFound,
                    "\(argument.database) is not being served: start `loveseat serve \(argument.database)`"
                )
            }
            number = report["lastEvent"]?.int ?? number
            if pending {
                report["peers"] = .array(try await withPending(report["peers"]?.array ?? [], backend))
            }
            try show(report, isLive: isLive)
            if once { return }
            try await Task.sleep(for: .seconds(1))
        }
    }

    /// Adds what is pending to each peer where it is known.
    private func withPending(_ peers: [JSONValue], _ backend: ControlBackend) async throws -> [JSONValue] {
        var found: [JSONValue] = []
        for var peer in peers {
            do { peer["pending"] = try await backend.pending(over: peer["key"]?.string ?? "") } catch {
                // It has disconnected, or nobody knows.
                guard LoveseatError.Code.notFound ~= error || LoveseatError.Code.unsupported ~= error else {
                    throw error
                }
            }
            found.append(peer)
        }
        return found
    }

    private func show(_ report: JSONValue, isLive: Bool) throws {
        if json {
            try Output.standard.line(report)
        } else {
            // Back to the corner, and everything behind it away.
            if isLive { try Output.standard.raw("\u{1B}[H\u{1B}[J".utf8) }
            let size = isLive ? Self.terminalSize() : nil
            let lines = PeerTableText(report).lines
            for line in lines.prefix(size.map { max(1, $0.rows - 1) } ?? lines.count) {
                try Output.standard.line(size.map { String(line.prefix($0.columns)) } ?? line)
            }
            if !isLive, !once { try Output.standard.line("") }
        }
        try Output.standard.flush()
    }

    private static func terminalSize() -> (rows: Int, columns: Int)? {
        var size = winsize()
        guard ioctl(1, UInt(TIOCGWINSZ), &size) == 0, size.ws_row > 1, size.ws_col > 0 else { return nil }
        return (Int(size.ws_row), Int(size.ws_col))
    }
}

/// A report of the connections as a table.
struct PeerTableText {
    let lines: [String]

    private static let titles = [
        "PEER", "SIDE", "WIRE", "STATE", "SENT", "RECEIVED", "RATE", "PENDING", "WHY", "FOR",
    ]
    private static let maximumName = 40

    init(_ report: JSONValue) {
        let peers = report["peers"]?.array ?? []
        let now = report["time"]?.int ?? 0
        let rows = [Self.titles] + peers.map { Self.row($0, now: now) }
        let widths = Self.titles.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        let last = report["rates"]?.array?.last
        let documents = (last?[0]?.int ?? 0) + (last?[1]?.int ?? 0)
        let process = report["process"]?.int.map { "process \($0) · " } ?? ""
        var lines = [
            "\(process)\(peers.count.counted("peer")) · \(documents.counted("document"))/s · \(Self.bytes(last?[2]?.int ?? 0))/s"
        ]
        for row in rows {
            let cells = zip(row, widths).map { $0.padding(toLength: max($1, 1), withPad: " ", startingAt: 0) }
            lines.append(cells.joined(separator: "  ").trimmingEnd)
        }
        for peer in peers where peer["pending"] != nil {
            lines += ["", "\(Self.name(of: peer)):"] + Self.pending(peer["pending"] ?? .null)
        }
        self.lines = lines
    }

    private static func row(_ peer: JSONValue, now: Int) -> [String] {
        let rate = peer["rate"]
        let documents = (rate?["sent"]?.int ?? 0) + (rate?["received"]?.int ?? 0)
        return [
            name(of: peer), peer["direction"]?.string ?? "", peer["wire"]?.string ?? "",
            peer["state"]?.string ?? "", "\(peer["sent"]?.int ?? 0)", "\(peer["received"]?.int ?? 0)",
            "\(documents)/s", amount(peer), peer["why"]?.string ?? "-",
            duration(max(0, now - (peer["since"]?.int ?? now)) / 1_000),
        ]
    }

    private static func name(of peer: JSONValue) -> String {
        String((peer["title"]?.string ?? "").printable.prefix(maximumName))
    }

    private static func amount(_ peer: JSONValue) -> String {
        let (outgoing, incoming) = (peer["pendingOut"]?.int ?? 0, peer["pendingIn"]?.int ?? 0)
        let parts = [
            outgoing == 0 ? nil : "\(outgoing) to it", incoming == 0 ? nil : "\(incoming) from it",
        ]
        let text = parts.compactMap(\.self).joined(separator: ", ")
        return text.isEmpty ? "-" : text
    }

    /// The documents that are pending at a peer, one a line, and how many others there are.
    private static func pending(_ list: JSONValue) -> [String] {
        let documents = list["documents"]?.array ?? []
        let sum = list["counts"]?.object.map { $0.reduce(0) { $0 + ($1.value.int ?? 0) } } ?? 0
        let lines = documents.map { document in
            let collection = document["collection"]?.string.map { "\($0)/" } ?? ""
            let id = "\(collection)\(document["id"]?.string ?? "")".printable
            let way = document["way"]?.string == "out" ? "to the peer" : "from the peer"
            let detail = (document["detail"]?.string ?? "").printable
            return "  \(id) (\(way)): \(document["why"]?.string ?? ""): \(detail)"
        }
        let others = sum - documents.count
        let isCut = list["isCut"]?.bool == true
        if others > 0 { return lines + ["  and \(others)\(isCut ? " or more" : "") others"] }
        return lines.isEmpty ? ["  nothing is pending"] : lines
    }

    static func bytes(_ count: Int) -> String {
        var (value, unit) = (Double(count), 0)
        let units = ["B", "kB", "MB", "GB", "TB"]
        while value >= 1_000, unit < units.count - 1 { (value, unit) = (value / 1_000, unit + 1) }
        return unit == 0 ? "\(count) B" : "\((value * 10).rounded() / 10) \(units[unit])"
    }

    private static func duration(_ seconds: Int) -> String {
        switch seconds {
        case ..<60: "\(seconds) s"
        case ..<3_600: "\(seconds / 60) min"
        case ..<86_400: "\(seconds / 3_600) h"
        default: "\(seconds / 86_400) d"
        }
    }
}

extension String {
    fileprivate var trimmingEnd: String {
        var text = self[...]
        while text.last == " " { text = text.dropLast() }
        return String(text)
    }
}
