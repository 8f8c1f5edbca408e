/// Reads the bytes that a ``RevisionTreeEncoder`` wrote, also those of earlier versions.
package enum RevisionTreeDecoder {
    /// The revision that a remote is marked as having in a stored form, of which nothing else is read. The outer nil is for bytes that are
    /// not of this version.
    package static func mark(of remote: RevisionTree.Remote, in bytes: [UInt8]) -> RevisionID?? {
        var input = bytes[...]
        guard input.popFirst().map(RevisionTreeEncoder.versions.contains) == true,
            let count = input.popCompact()
        else {
            return nil
        }
        let nodes = input
        guard input.skipNodes(count), let marks = input.popCompact() else { return nil }
        for _ in 0..<marks {
            guard let other = input.popCompact(), let position = input.popCompact(), position < count else {
                return nil
            }
            guard other == remote else { continue }
            input = nodes
            guard input.skipNodes(position), input.popFirst() != nil, input.popCompact() != nil,
                let id = input.popRevision()
            else { return nil }
            return .some(id)
        }
        return .some(nil)
    }

    /// Reads the stored form; nil if the bytes are not one.
    ///
    /// `closing`: the ID of the tombstone with which version 1 closed the branch of a revision.
    package static func decode(
        _ bytes: [UInt8],
        currentBody: JSONText,
        closing: (RevisionID) -> RevisionID
    ) -> RevisionTree? {
        var input = bytes[...]
        guard let version = input.popFirst(), version == 1 || RevisionTreeEncoder.versions.contains(version),
            var nodes = nodes(&input, currentBody: currentBody)
        else { return nil }
        guard version > 1 else {
            guard let remotes = marks(&input, nodes, count: nil) else { return nil }
            return decodeVersion1(&nodes, remotes: remotes, closing: closing)
        }
        guard let count = input.popCompact(), let remotes = marks(&input, nodes, count: count) else {
            return nil
        }
        var tree = RevisionTree(nodes: nodes, remotes: remotes)
        guard let closedCount = input.popCompact() else { return nil }
        for _ in 0..<closedCount {
            guard let id = input.popRevision() else { return nil }
            tree.closed.insert(id)
        }
        if version >= RevisionTreeEncoder.versionWithCopies {
            guard let count = input.popCompact(), count <= nodes.count else { return nil }
            var copies: [RevisionID] = []
            for _ in 0..<count {
                guard let position = input.popCompact(), position < nodes.count,
                    CopyName(nodes[position].id) != nil
                else { return nil }
                copies.append(nodes[position].id)
            }
            tree.addCopies(copies)
        } else {
            guard let copies = input.popRecognisedCopies() else { return nil }
            if !copies.isEmpty { treatAsEdits(copies, in: &tree) }
        }
        if version <= RevisionTreeEncoder.version { return tree }
        guard let forgetful = input.popCompact(), forgetful <= nodes.count else { return nil }
        for _ in 0..<forgetful {
            guard let position = input.popCompact(), position < nodes.count,
                let fingerprints = input.popFingerprints()
            else { return nil }
            tree.nodes[nodes[position].id]?.forgotten = fingerprints
        }
        if version == RevisionTreeEncoder.versionWithVectors {
            guard let vectors = vectors(&input, nodes) else { return nil }
            tree.vectors = vectors
        }
        return tree
    }

    /// Reads the version vectors of nodes, in ascending order of the nodes' positions.
    private static func vectors(_ input: inout ArraySlice<UInt8>, _ nodes: [RevisionTree.Node])
        -> [RevisionID: VersionVector]?
    {
        guard let count = input.popCompact(), 1...nodes.count ~= count else { return nil }
        var vectors: [RevisionID: VersionVector] = [:]
        var last = -1
        for _ in 0..<count {
            guard let position = input.popCompact(), position > last, position < nodes.count,
                let length = input.popCompact(), length <= input.count,
                let vector = try? VersionVector(encoded: input.prefix(length)), !vector.isEmpty
            else { return nil }
            input = input.dropFirst(length)
            vectors[nodes[position].id] = vector
            last = position
        }
        return vectors
    }

    /// Turns the copies that an older version recognised into edits, with their originals. Revisions that become candidates only by that
    /// stay superseded.
    private static func treatAsEdits(
        _ recognised: [RevisionID: Set<RevisionID>],
        in tree: inout RevisionTree
    ) {
        for (id, originals) in recognised { tree.copies[id] = originals.max() }
        let before = Set(tree.candidates.map(\.node.id))
        tree.closed = Set(tree.closed.map(tree.original))
        tree.copies = [:]
        if tree.isLine { return }
        tree.closed.formUnion(tree.candidates.map(\.node.id).filter { !before.contains($0) })
    }

    private static func nodes(_ input: inout ArraySlice<UInt8>, currentBody: JSONText)
        -> [RevisionTree.Node]?
    {
        guard let count = input.popCompact(), count > 0, count <= input.count else { return nil }
        var parents: [Int] = []
        var nodes: [RevisionTree.Node] = []
        for index in 0..<count {
            guard let flags = input.popFirst(), let parent = input.popCompact(), parent <= count,
                let id = input.popRevision(), let length = input.popCompact(), length - 1 <= input.count
            else { return nil }
            var body: JSONText?
            if length > 0 {
                body = JSONText(trusted: Array(input.prefix(length - 1)))
                input = input.dropFirst(length - 1)
            }
            parents.append(parent)
            nodes.append(
                RevisionTree.Node(
                    id: id,
                    parent: nil,
                    flags: RevisionTree.Flags(rawValue: flags),
                    body: index == 0 ? currentBody : body
                )
            )
        }
        for (index, parent) in parents.enumerated() where parent > 0 {
            // Generations descend along a line. With other bytes, a walk would not end.
            guard nodes[parent - 1].id.generation < nodes[index].id.generation else { return nil }
            nodes[index].parent = nodes[parent - 1].id
        }
        return nodes
    }

    /// `count`: how many there are; nil for as many as the rest holds, as in version 1.
    private static func marks(
        _ input: inout ArraySlice<UInt8>,
        _ nodes: [RevisionTree.Node],
        count: Int?
    ) -> [RevisionTree.Remote: RevisionID]? {
        var remotes: [RevisionTree.Remote: RevisionID] = [:]
        var rest = count ?? .max
        while rest > 0, count != nil || !input.isEmpty {
            guard let remote = input.popCompact(), let position = input.popCompact(), position < nodes.count
            else { return nil }
            remotes[remote] = nodes[position].id
            rest -= 1
        }
        return remotes
    }

    /// Reads a tree that version 1 stored: closed branches end in tombstones flagged 4; those in conflict are flagged 2
    /// from their leaf down. The first node is the current revision, and remains so.
    private static func decodeVersion1(
        _ nodes: inout [RevisionTree.Node],
        remotes: [RevisionTree.Remote: RevisionID],
        closing: (RevisionID) -> RevisionID
    ) -> RevisionTree {
        let (closedFlag, current) = (RevisionTree.Flags(rawValue: 4), nodes[0].id)
        let parents = Set(nodes.compactMap(\.parent))
        var closed: Set<RevisionID> = []
        var invented: Set<RevisionID> = []
        for index in nodes.indices {
            let node = nodes[index]
            nodes[index].flags = node.flags.intersection([.deleted, .hasBlobs])
            guard !parents.contains(node.id), node.id != current else { continue }
            if node.flags.contains(closedFlag) {
                // The tombstone that closed the branch was not an edit: the revision below it is the closed one.
                if let parent = node.parent, node.id == closing(parent), !remotes.values.contains(node.id) {
                    invented.insert(node.id)
                    closed.insert(parent)
                } else {
                    closed.insert(node.id)
                }
            } else if node.flags.contains(.pending) {
                nodes[index].flags.insert(.pending)
            }
        }
        var tree = RevisionTree(nodes: nodes.filter { !invented.contains($0.id) }, remotes: remotes)
        tree.closed = closed
        if tree.isLine { return tree }
        // Revisions that lost in that database stay closed.
        for candidate in tree.candidates where candidate.node.id != current {
            tree.closed.insert(candidate.original)
        }
        return tree
    }
}

extension ArraySlice<UInt8> {
    mutating func popCompact() -> Int? {
        var value: UInt = 0
        for shift in stride(from: UInt(0), to: 56, by: 7) {
            guard let byte = popFirst() else { return nil }
            value |= UInt(byte & 0x7F) << shift
            if byte < 0x80 { return Int(value) }
        }
        return nil
    }

    /// Skips stored nodes: the flags, parent, generation, digest and body of each.
    mutating func skipNodes(_ count: Int) -> Bool {
        for _ in 0..<count {
            guard popFirst() != nil, popCompact() != nil, popCompact() != nil, let stored = popCompact()
            else { return false }
            let digest = RevisionID.lengthOfStored(stored)
            guard digest <= self.count else { return false }
            self = dropFirst(digest)
            guard let length = popCompact(), length - 1 <= self.count else { return false }
            self = dropFirst(Swift.max(0, length - 1))
        }
        return true
    }

    /// The copies that version 0.2.0 recognised by their content, with their originals.
    fileprivate mutating func popRecognisedCopies() -> [RevisionID: Set<RevisionID>]? {
        guard let count = popCompact() else { return nil }
        var copies: [RevisionID: Set<RevisionID>] = [:]
        for _ in 0..<count {
            guard let id = popRevision(), let sources = popCompact() else { return nil }
            for _ in 0..<sources {
                guard let original = popRevision(), popRevision() != nil else { return nil }
                copies[id, default: []].insert(original)
            }
        }
        return copies
    }

    fileprivate mutating func popFingerprints() -> [UInt32]? {
        guard let count = popCompact(), 0...RevisionTree.fingerprintsKept ~= count, 4 * count <= self.count
        else { return nil }
        defer { self = dropFirst(4 * count) }
        return (0..<count).map { index in
            (0..<4).reduce(0) { $0 | UInt32(self[startIndex + 4 * index + $1]) << (8 * $1) }
        }
    }

    fileprivate mutating func popRevision() -> RevisionID? {
        guard let generation = popCompact().flatMap({ UInt32(exactly: $0) }), let stored = popCompact()
        else { return nil }
        let length = RevisionID.lengthOfStored(stored)
        guard length > 0, length <= count else { return nil }
        defer { self = dropFirst(length) }
        if stored > RevisionID.storedText {
            return RevisionID("\(generation)-" + String(decoding: prefix(length), as: UTF8.self))
        }
        return prefix(length).withUnsafeBytes { RevisionID(generation: generation, digestBytes: $0) }
    }
}
