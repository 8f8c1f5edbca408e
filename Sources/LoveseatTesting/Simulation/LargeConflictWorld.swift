import LoveseatModel

/// Documents of megabytes conflict.
struct LargeConflictWorld: HistoryWorld {
    unowned let run: SimulationRun

    func schedule() {
        let length = dice.untidy.int(1...5) << 20
        let first = dice.untidy.int(0...12_000)
        let block = dice.untidy.bytes(24 << 10).map { String($0, radix: 16) }.joined()
        let text = String(repeating: block, count: max(1, length / block.utf8.count))
        for number in 0..<dice.untidy.int(2...5) {
            untidyAt(first...first + 4_000) {
                let peer = pickUser()
                trace("\(peer.index) saves \(text.utf8.count) bytes")
                let body = JSONText(canonical: [
                    "n": JSONValue(number), "by": JSONValue(peer.index), "text": .string(text),
                ])
                try edits.save("large0", 0, at: peer, body)
            }
        }
    }
}
