import LoveseatModel

/// Peers become known under other addresses, earlier ones among them, and two addresses change places.
struct AddressWorld: HistoryWorld {
    unowned let run: SimulationRun

    func address(of edge: Edge, _ form: String) -> String { "peer-\(edge.target)/\(form)" }

    private func name(of edge: Edge) -> String { mesh.addresses[edge] ?? "peer-\(edge.target)" }

    /// A peer gets an address that another one may have, which then gets its own. Sessions under either address end before:
    /// nobody can tell two databases apart that have one address at the same time.
    private func move(_ edge: Edge, from old: String, to new: String) {
        for other in mesh.edges where other.source == edge.source && other != edge && name(of: other) == new {
            mesh.addresses[other] = old
        }
        mesh.addresses[edge] = new
        for connection in traffic.connections
        where connection.source.index == edge.source && [old, new].contains(connection.remoteName) {
            connection.cut()
        }
    }

    func schedule() {
        let edges = mesh.movable(mesh.edges)
        for number in 0..<dice.worlds.int(1...6) {
            let edge = dice.worlds.pick(edges)
            let others = edges.filter { $0.source == edge.source && $0 != edge }
            let other = others.isEmpty ? nil : dice.worlds.pick(others)
            let kind = dice.worlds.int(0...3)
            at(0...20_000) {
                trace("address \(edge.source)>\(edge.target) \(kind)")
                switch kind {
                case 0: move(edge, from: name(of: edge), to: "peer-\(edge.target)")
                case 1: if let other { move(edge, from: name(of: edge), to: name(of: other)) }
                default: mesh.addresses[edge] = address(of: edge, "\(number)")
                }
            }
        }
    }
}
