/// The bytes that the database keeps of a tree, beside the winner's own row (docs/schema.md).
///
/// A version byte; the number of nodes; each node as flags, parent (its position + 1, or 0), generation, digest
/// length, digest, body length + 1 or 0, body; then pairs of a remote's number and a node's position. Numbers are
/// varints. The winner comes first and leaves its body to its row.
extension RevisionTree {
    private static let version: UInt8 = 1

    /// The stored form; nil for the common document of one revision that no remote is known to have.
    package var encoded: [UInt8]? {
        guard let winner, nodes.count > 1 || !remotes.isEmpty else { return nil }
        let ordered = [winner] + nodes.filter { $0.id != winner.id }
        let positions = Dictionary(ordered.enumerated().map { ($1.id, $0) }) { first, _ in first }
        var bytes: [UInt8] = [Self.version]
        bytes.appendCompact(ordered.count)
        for (index, node) in ordered.enumerated() {
            bytes.append(node.flags.rawValue)
            bytes.appendCompact(node.parent.flatMap { positions[$0] }.map { $0 + 1 } ?? 0)
            bytes.appendCompact(Int(node.id.generation))
            let digest = Array(node.id.digest.utf8)
            bytes.appendCompact(digest.count / 2)
            for pair in stride(from: 0, to: digest.count - 1, by: 2) {
                bytes.append(
                    (hexadecimalDigit(digest[pair]) ?? 0) << 4 | (hexadecimalDigit(digest[pair + 1]) ?? 0)
                )
            }
            let body = index == 0 ? nil : node.body
            bytes.appendCompact(body.map { $0.bytes.count + 1 } ?? 0)
            bytes.append(contentsOf: body?.bytes ?? [])
        }
        for (remote, id) in remotes.sorted(by: { $0.key < $1.key }) {
            guard let position = positions[id] else { continue }
            bytes.appendCompact(remote)
            bytes.appendCompact(position)
        }
        return bytes
    }

    /// Reads the stored form; nil if the bytes are not one.
    package init?(encoded bytes: [UInt8], winnerBody: JSONText) {
        var input = bytes[...]
        guard input.popFirst() == Self.version, let count = input.popCompact(), count > 0,
            count <= bytes.count
        else { return nil }
        var parents: [Int] = []
        var nodes: [Node] = []
        for index in 0..<count {
            guard let flags = input.popFirst(), let parent = input.popCompact(), parent <= count,
                let generation = input.popCompact().flatMap({ UInt32(exactly: $0) }),
                let length = input.popCompact(), length > 0, length <= input.count
            else { return nil }
            let id = RevisionID(generation: generation, digest: input.prefix(length))
            input = input.dropFirst(length)
            guard let bodyLength = input.popCompact(), bodyLength - 1 <= input.count else { return nil }
            var body: JSONText?
            if bodyLength > 0 {
                body = JSONText(trusted: Array(input.prefix(bodyLength - 1)))
                input = input.dropFirst(bodyLength - 1)
            }
            parents.append(parent)
            nodes.append(
                Node(id: id, parent: nil, flags: Flags(rawValue: flags), body: index == 0 ? winnerBody : body)
            )
        }
        for (index, parent) in parents.enumerated() where parent > 0 {
            nodes[index].parent = nodes[parent - 1].id
        }
        var remotes: [Remote: RevisionID] = [:]
        while !input.isEmpty {
            guard let remote = input.popCompact(), let position = input.popCompact(), position < count
            else { return nil }
            remotes[remote] = nodes[position].id
        }
        self.init(nodes: nodes, remotes: remotes)
    }
}

extension [UInt8] {
    fileprivate mutating func appendCompact(_ value: Int) {
        var rest = UInt(bitPattern: value)
        while rest >= 0x80 {
            append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        append(UInt8(truncatingIfNeeded: rest))
    }
}

extension ArraySlice<UInt8> {
    fileprivate mutating func popCompact() -> Int? {
        var value: UInt = 0
        for shift in stride(from: UInt(0), to: 56, by: 7) {
            guard let byte = popFirst() else { return nil }
            value |= UInt(byte & 0x7F) << shift
            if byte < 0x80 { return Int(value) }
        }
        return nil
    }
}
