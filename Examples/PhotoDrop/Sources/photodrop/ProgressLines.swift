import Foundation
import PhotoDropCore
import PhotoDropKit
import Synchronization

/// Shows how far photos are: a line for each of a few on a terminal, a line for all now and then on one that cannot replace lines, JSON, or
/// nothing but failures.
final class ProgressLines: Sendable {
    private static let maximumLines = 8
    private static let interval = Duration.milliseconds(100)
    private static let lineInterval = Duration.seconds(2)
    private static let barWidth = 20

    private struct State {
        var photos: [String: PhotoProgress] = [:]
        var order: [String] = []
        var drawn = 0
        var lastDraw = ContinuousClock.now - .seconds(1)
        var remark: String?
    }

    private let json: Bool
    private let isTerminal: Bool
    private let replacesLines = Terminal.replacesLines
    private let state = Mutex(State())

    init(json: Bool) {
        self.json = json
        isTerminal = !json && Terminal.isPresent
    }

    func show(_ event: SendEvent) {
        if json {
            // Sending continues if nobody reads how it goes.
            try? Output.line(event.json)
            return
        }
        switch event {
        case .photo(let photo):
            let isNew = state.withLock { state in
                if state.photos[photo.id] == nil { state.order.append(photo.id) }
                defer { state.photos[photo.id] = photo }
                return state.photos[photo.id]?.state != photo.state
            }
            if case .failed(let error) = photo.state, isNew {
                clear()
                Output.remark("photodrop: \(photo.name): \(error)")
            }
            state.withLock { $0.remark = nil }
        case .waiting(let reason):
            state.withLock { $0.remark = "waiting for the receiver: \(reason)" }
        case .connecting, .done: return
        }
        draw()
    }

    /// Removes the lines.
    func end() { clear() }

    private func draw() {
        guard isTerminal else { return }
        let text = state.withLock { state -> String? in
            let now = ContinuousClock.now
            guard now - state.lastDraw >= (replacesLines ? Self.interval : Self.lineInterval) else {
                return nil
            }
            state.lastDraw = now
            let lines = Self.lines(state)
            guard replacesLines else { return lines.last.map { $0.printable + "\n" } }
            defer { state.drawn = lines.count }
            return Self.up(state.drawn) + lines.map { "\u{1B}[K\($0.printable)\n" }.joined() + "\u{1B}[J"
        }
        if let text { Output.remark(raw: text) }
    }

    private func clear() {
        guard isTerminal, replacesLines else { return }
        let drawn = state.withLock { state in
            defer { state.drawn = 0 }
            return state.drawn
        }
        if drawn > 0 { Output.remark(raw: Self.up(drawn) + "\u{1B}[J") }
    }

    private static func up(_ lines: Int) -> String { lines == 0 ? "" : "\u{1B}[\(lines)A\r" }

    private static func lines(_ state: State) -> [String] {
        let photos = state.order.compactMap { state.photos[$0] }
        let active = photos.filter { $0.state == .sending }
        var lines = active.prefix(maximumLines).map { line($0.name, $0.sent, $0.size) }
        let stored = photos.count { $0.state == .stored }
        let sent = photos.reduce(0) { $0 + $1.sent }
        let size = photos.reduce(0) { $0 + $1.size }
        if !photos.isEmpty { lines.append(line("\(stored) of \(photos.count) photos", sent, size)) }
        if let remark = state.remark { lines.append(String(remark.prefix(78))) }
        return lines
    }

    private static func line(_ name: String, _ sent: UInt64, _ size: UInt64) -> String {
        let share = size == 0 ? 1 : min(1, Double(sent) / Double(size))
        let full = Int(share * Double(barWidth))
        let bar = String(repeating: "=", count: full) + String(repeating: " ", count: barWidth - full)
        let shown = name.count > 30 ? String(name.prefix(29)) + "…" : name
        let padded = shown + String(repeating: " ", count: 30 - shown.count)
        return "\(padded) [\(bar)] \(ByteText.text(sent)) of \(ByteText.text(size))"
    }
}
