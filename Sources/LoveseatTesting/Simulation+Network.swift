import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// Replications that go on by themselves, and bodies that fill every buffer.
extension SimulationRun {
    /// Lets a replication connect again by itself.
    func persist(_ plan: inout SimulatedConnection.Plan) {
        if worlds.isDisjoint(with: [.network, .power]) || !worldDice.chance(0.6) { return }
        if worlds.contains(.power) { plan.isContinuous = plan.documentIDs == nil }
        plan.attempts = plan.isContinuous ? nil : 10
        plan.connectDelay = worldDice.pick([0...0, 0...500])
    }

    func scheduleNetwork() {
        for _ in 0..<worldDice.int(1...4) {
            let (number, length) = (worldDice.int(0...1_000), worldDice.int(1...5_000))
            at(0...20_000) { [unowned self] in
                if connections.isEmpty { return }
                let connection = connections[number % connections.count]
                trace("suspend \(connection.source.index)>\(connection.target.index) for \(length)")
                connection.suspend(for: length)
            }
        }
        for _ in 0..<worldDice.int(1...3) {
            let (peer, length) = (worldDice.pick(peers), worldDice.int(1...6_000))
            at(0...20_000) { [unowned self] in
                trace("server of \(peer.index) restarts after \(length)")
                peer.restartServer(after: length, clock, runtime.runtime())
            }
        }
    }

    func scheduleBodies() {
        for number in 0..<worldDice.int(1...2) {
            // A filter need not let through what its guest saves.
            let author = worldDice.pick(peers.filter { !isGuest($0) })
            let length = worldDice.int(1...23) << 20
            at(0...15_000) { [unowned self] in
                trace("\(author.index) saves \(length) bytes")
                // More than a compressor remembers, so that it stays long on the way.
                let block = worldDice.bytes(48 << 10).map { String($0, radix: 16) }.joined()
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
