import LoveseatModel
import LoveseatStorage

/// One peer begins with thousands of documents.
struct CrowdWorld: HistoryWorld {
    unowned let run: SimulationRun

    func schedule() {
        let count = dice.worlds.int(1_000...5_000)
        at(0...0) {
            trace("\(count) documents")
            try saveMany(peers[0], Array(0..<count), version: 0)
        }
        let busiest = mesh.edges.filter { $0.source == 0 || $0.target == 0 }
        for edge in busiest { at(1...100) { traffic.open(edge, SimulatedConnection.Plan()) } }
        let editors = Set([0] + busiest.flatMap { [$0.source, $0.target] }).sorted().prefix(3)
        for editor in editors {
            at(12_000...13_000) {
                let edited = (0..<count).filter { _ in dice.worlds.chance(0.6) }
                trace("\(editor) edits \(edited.count) documents")
                try saveMany(peers[editor], edited, version: editor + 1)
            }
        }
        at(13_001...13_001) {
            for edge in mesh.movable(busiest) {
                mesh.addresses[edge] = AddressWorld(run: run).address(of: edge, "new")
            }
        }
        for edge in busiest { at(13_002...14_000) { traffic.connect(edge) } }
    }

    private func saveMany(_ peer: SimulatedPeer, _ numbers: [Int], version: Int) throws {
        try peer.store.write { transaction in
            for number in numbers {
                let body: JSONValue = [
                    "n": JSONValue(number), "by": JSONValue(peer.index), "v": JSONValue(version),
                ]
                _ = try transaction.save(
                    "many\(number)",
                    in: peer.collections[0],
                    body: JSONText(canonical: body),
                    isDeleted: false,
                    condition: .lastWriteWins
                )
            }
        }
    }
}
