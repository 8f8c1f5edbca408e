/// The bytes that the database keeps of a tree, beside the current revision's own row (docs/schema.md).
///
/// A version byte: 4 if there are copies, otherwise 3 if there are fingerprints, otherwise 2; the number of nodes; each node as flags,
/// parent (its position + 1, or 0), revision ID, body length + 1 or 0, body; the number of remotes, then pairs of a remote's number and a
/// node's position; the number of closed revisions, then their IDs; the number of copies, then the position of each (in versions 2 and 3 it
/// is 0). From version 3 on follow the number of nodes with fingerprints of forgotten revisions, then each one's position, the number of
/// its fingerprints, and their bytes, the lowest first.
///
/// Loveseat 0.2.0 recognised copies by their content, and wrote them into versions 2 and 3: each one's ID, the number of its sources, and
/// the two IDs of each. They are edits now.
///
/// A revision ID is its generation, the length of its digest, and the digest: its bytes if it is hexadecimal, otherwise its text, whose
/// length is increased by 128. Numbers are varints. The current revision comes first and leaves its body to its row.
extension RevisionTree {
    private static let version: UInt8 = 2
    private static let versionWithFingerprints: UInt8 = 3
    private static let versionWithCopies: UInt8 = 4
    private static let versions = version...versionWithCopies

    /// The stored form; nil for the common document of one revision that no remote is known to have.
    package var encoded: [UInt8]? { current.flatMap { encoded(current: $0) } }

    /// The stored form, if the current revision is known.
    package func encoded(current: Node) -> [UInt8]? {
        guard nodes.count > 1 || !remotes.isEmpty || !isLine else { return nil }
        let ordered = [current] + nodes.values.filter { $0.id != current.id }.sorted { $0.id > $1.id }
        var positions: [RevisionID: Int] = [:]
        if !remotes.isEmpty || nodes.values.contains(where: { $0.parent != nil }) {
            positions.reserveCapacity(ordered.count)
            for (index, node) in ordered.enumerated() { positions[node.id] = index }
        }
        let forgetful = ordered.indices.filter { !ordered[$0].forgotten.isEmpty }
        let version =
            !copies.isEmpty
            ? Self.versionWithCopies : forgetful.isEmpty ? Self.version : Self.versionWithFingerprints
        var bytes: [UInt8] = [version]
        bytes.reserveCapacity(ordered.dropFirst().reduce(100) { $0 + 32 + ($1.body?.bytes.count ?? 0) })
        bytes.appendCompact(ordered.count)
        for (index, node) in ordered.enumerated() {
            bytes.append(node.flags.rawValue)
            bytes.appendCompact(node.parent.flatMap { positions[$0] }.map { $0 + 1 } ?? 0)
            bytes.append(node.id)
            let body = index == 0 ? nil : node.body
            bytes.appendCompact(body.map { $0.bytes.count + 1 } ?? 0)
            bytes.append(contentsOf: body?.bytes ?? [])
        }
        let marks = remotes.compactMap { remote, id in positions[id].map { (remote, $0) } }
        bytes.appendCompact(marks.count)
        for (remote, position) in marks.sorted(by: { $0.0 < $1.0 }) {
            bytes.appendCompact(remote)
            bytes.appendCompact(position)
        }
        bytes.appendCompact(closed.count)
        for id in closed.sorted(by: >) { bytes.append(id) }
        bytes.appendCompact(copies.count)
        if !copies.isEmpty {
            for position in ordered.indices where copies[ordered[position].id] != nil {
                bytes.appendCompact(position)
            }
        }
        guard version > Self.version else { return bytes }
        bytes.appendCompact(forgetful.count)
        for position in forgetful {
            bytes.appendCompact(position)
            bytes.appendCompact(ordered[position].forgotten.count)
            for print in ordered[position].forgotten {
                for shift in stride(from: 0, to: 32, by: 8) {
                    bytes.append(UInt8(truncatingIfNeeded: print >> shift))
                }
            }
        }
        return bytes
    }

    /// Returns the stored form of a tree with one more remote that has the current revision, without decoding the tree.
    ///
    /// - Returns: nil if the remote has a mark there already, or the bytes are of another version.
    package static func encoded(_ bytes: [UInt8], markingCurrentAt remote: Remote) -> [UInt8]? {
        var input = bytes[...]
        guard input.popFirst().map(versions.contains) == true, let count = input.popCompact(),
            input.skipNodes(count)
        else { return nil }
        let end = input.startIndex
        guard let marks = input.popCompact() else { return nil }
        let start = input.startIndex
        // Ascending by remote.
        var place = start
        for _ in 0..<marks {
            guard let other = input.popCompact(), input.popCompact() != nil, other != remote else {
                return nil
            }
            if other < remote { place = input.startIndex }
        }
        var marked = Array(bytes[..<end])
        marked.reserveCapacity(bytes.count + 12)
        marked.appendCompact(marks + 1)
        marked += bytes[start..<place]
        marked.appendCompact(remote)
        marked.appendCompact(0)
        marked += bytes[place...]
        return marked
    }

    /// The revision that a remote is marked as having in a stored form, of which nothing else is read. The outer nil is for bytes that are
    /// not of this version.
    package static func mark(of remote: Remote, inEncoded bytes: [UInt8]) -> RevisionID?? {
        var input = bytes[...]
        guard input.popFirst().map(versions.contains) == true, let count = input.popCompact() else {
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
    package init?(
        encoded bytes: [UInt8],
        currentBody: JSONText,
        closing: (RevisionID) -> RevisionID
    ) {
        var input = bytes[...]
        guard let version = input.popFirst(), version == 1 || Self.versions.contains(version),
            var nodes = Self.nodes(&input, currentBody: currentBody)
        else { return nil }
        guard version > 1 else {
            guard let remotes = Self.marks(&input, nodes, count: nil) else { return nil }
            self.init(version1: &nodes, remotes: remotes, closing: closing)
            return
        }
        guard let count = input.popCompact(), let remotes = Self.marks(&input, nodes, count: count) else {
            return nil
        }
        self.init(nodes: nodes, remotes: remotes)
        guard let closedCount = input.popCompact() else { return nil }
        for _ in 0..<closedCount {
            guard let id = input.popRevision() else { return nil }
            closed.insert(id)
        }
        if version == Self.versionWithCopies {
            guard let count = input.popCompact(), count <= nodes.count else { return nil }
            var copies: [RevisionID] = []
            for _ in 0..<count {
                guard let position = input.popCompact(), position < nodes.count,
                    CopyName(nodes[position].id) != nil
                else { return nil }
                copies.append(nodes[position].id)
            }
            addCopies(copies)
        } else {
            guard let copies = input.popRecognisedCopies() else { return nil }
            if !copies.isEmpty { treatAsEdits(copies) }
        }
        if version <= Self.version { return }
        guard let forgetful = input.popCompact(), forgetful <= nodes.count else { return nil }
        for _ in 0..<forgetful {
            guard let position = input.popCompact(), position < nodes.count,
                let fingerprints = input.popFingerprints()
            else { return nil }
            self.nodes[nodes[position].id]?.forgotten = fingerprints
        }
    }

    /// Turns the copies that an older version recognised into edits, with their originals. Revisions that become candidates only by that
    /// stay superseded.
    private mutating func treatAsEdits(_ recognised: [RevisionID: Set<RevisionID>]) {
        for (id, originals) in recognised { copies[id] = originals.max() }
        let before = Set(candidates.map(\.node.id))
        closed = Set(closed.map(original))
        copies = [:]
        if isLine { return }
        closed.formUnion(candidates.map(\.node.id).filter { !before.contains($0) })
    }

    private static func nodes(_ input: inout ArraySlice<UInt8>, currentBody: JSONText) -> [Node]? {
        guard let count = input.popCompact(), count > 0, count <= input.count else { return nil }
        var parents: [Int] = []
        var nodes: [Node] = []
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
                Node(
                    id: id,
                    parent: nil,
                    flags: Flags(rawValue: flags),
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
    private static func marks(_ input: inout ArraySlice<UInt8>, _ nodes: [Node], count: Int?) -> [Remote:
        RevisionID]?
    {
        var remotes: [Remote: RevisionID] = [:]
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
    private init(
        version1 nodes: inout [Node],
        remotes: [Remote: RevisionID],
        closing: (RevisionID) -> RevisionID
    ) {
        let (closedFlag, current) = (Flags(rawValue: 4), nodes[0].id)
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
        self.init(nodes: nodes.filter { !invented.contains($0.id) }, remotes: remotes)
        self.closed = closed
        if isLine { return }
        // Revisions that lost in that database stay closed.
        for candidate in candidates where candidate.node.id != current {
            self.closed.insert(candidate.original)
        }
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

    fileprivate mutating func append(_ id: RevisionID) {
        appendCompact(Int(id.generation))
        let start = count
        let length = id.digestLength
        appendCompact(length / 2)
        var text = id.text
        text.withUTF8 { text in
            let digits = text.suffix(length)
            if length % 2 == 0, appendHexadecimal(digits) { return }
            removeSubrange(start...)
            appendCompact(RevisionID.storedText + length)
            append(contentsOf: digits)
        }
    }

    /// Appends the bytes of lower-case hexadecimal digits. Returns false if the characters are others.
    private mutating func appendHexadecimal(_ digits: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        var isHexadecimal = true
        append(
            contentsOf: [UInt8](unsafeUninitializedCapacity: digits.count / 2) { bytes, count in
                var place = digits.startIndex
                while place + 1 < digits.endIndex {
                    guard let high = hexadecimalDigit(digits[place]),
                        let low = hexadecimalDigit(digits[place + 1]),
                        !(0x41...0x46).contains(digits[place]), !(0x41...0x46).contains(digits[place + 1])
                    else { return isHexadecimal = false }
                    bytes[count] = high << 4 | low
                    count += 1
                    place += 2
                }
            }
        )
        return isHexadecimal
    }
}

extension RevisionID {
    /// The number that is added to the length of a digest that is stored as text. A hexadecimal digest has at most so many bytes.
    fileprivate static let storedText = maximumDigest / 2

    /// The number of bytes of a digest.
    fileprivate static func lengthOfStored(_ length: Int) -> Int {
        length > storedText ? length - storedText : length
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

    /// Skips stored nodes: the flags, parent, generation, digest and body of each.
    fileprivate mutating func skipNodes(_ count: Int) -> Bool {
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
