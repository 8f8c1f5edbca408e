import LoveseatModel
import LoveseatStorage

/// Bodies that fill every buffer.
struct BodyWorld: HistoryWorld {
    unowned let run: SimulationRun

    func schedule() {
        for number in 0..<dice.worlds.int(1...2) {
            // A filter need not let through what its guest saves.
            let author = dice.worlds.pick(peers.filter { !mesh.isGuest($0) })
            let length = dice.worlds.int(1...23) << 20
            at(0...15_000) {
                trace("\(author.index) saves \(length) bytes")
                // More than a compressor remembers, so that it stays long on the way.
                let block = dice.worlds.bytes(48 << 10).map { String($0, radix: 16) }.joined()
                let text = String(repeating: block, count: max(1, length / block.utf8.count))
                let id = "large\(number)"
                let body = JSONText(canonical: [
                    "n": JSONValue(number), "by": JSONValue(author.index), "text": .string(text),
                ])
                _ = try author.store.write {
                    try $0.save(
                        id,
                        in: author.collections[0],
                        body: body,
                        isDeleted: false,
                        condition: .lastWriteWins
                    )
                }
            }
        }
    }
}
