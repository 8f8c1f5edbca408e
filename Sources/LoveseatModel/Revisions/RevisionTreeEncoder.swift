/// Writes the bytes that the database keeps of a tree, beside the current revision's own row (docs/schema.md).
///
/// A version byte: 5 if there are version vectors, otherwise 4 if there are copies, otherwise 3 if there are fingerprints, otherwise 2; the
/// number of nodes; each node as flags, parent (its position + 1, or 0), revision ID, body length + 1 or 0, body; the number of remotes,
/// then pairs of a remote's number and a node's position; the number of closed revisions, then their IDs; the number of copies, then the
/// position of each (in versions 2 and 3 it is 0). From version 3 on follow the number of nodes with fingerprints of forgotten revisions,
/// then each one's position, the number of its fingerprints, and their bytes, the lowest first. In version 5 follow the number of nodes
/// with a vector, then each one's position, in ascending order, the length of its vector's binary form, and that form.
///
/// Loveseat 0.2.0 recognised copies by their content, and wrote them into versions 2 and 3: each one's ID, the number of its sources, and
/// the two IDs of each. They are edits now.
///
/// A revision ID is its generation, the length of its digest, and the digest: its bytes if it is hexadecimal, otherwise its text, whose
/// length is increased by 128. Numbers are varints. The current revision comes first and leaves its body to its row.
package enum RevisionTreeEncoder {
    static let version: UInt8 = 2
    private static let versionWithFingerprints: UInt8 = 3
    static let versionWithCopies: UInt8 = 4
    static let versionWithVectors: UInt8 = 5
    static let versions = version...versionWithVectors

    /// The stored form; nil for the common document of one revision that no remote is known to have.
    package static func encode(_ tree: RevisionTree) -> [UInt8]? {
        tree.current.flatMap { encode(tree, current: $0) }
    }

    /// The stored form, if the current revision is known.
    package static func encode(_ tree: RevisionTree, current: RevisionTree.Node) -> [UInt8]? {
        guard tree.nodes.count > 1 || !tree.remotes.isEmpty || !tree.vectors.isEmpty || !tree.isLine else {
            return nil
        }
        let ordered = [current] + tree.nodes.values.filter { $0.id != current.id }.sorted { $0.id > $1.id }
        var positions: [RevisionID: Int] = [:]
        if !tree.remotes.isEmpty || tree.nodes.values.contains(where: { $0.parent != nil }) {
            positions.reserveCapacity(ordered.count)
            for (index, node) in ordered.enumerated() { positions[node.id] = index }
        }
        let forgetful = ordered.indices.filter { !ordered[$0].forgotten.isEmpty }
        let version = version(of: tree, hasFingerprints: !forgetful.isEmpty)
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
        let marks = tree.remotes.compactMap { remote, id in positions[id].map { (remote, $0) } }
        bytes.appendCompact(marks.count)
        for (remote, position) in marks.sorted(by: { $0.0 < $1.0 }) {
            bytes.appendCompact(remote)
            bytes.appendCompact(position)
        }
        bytes.appendCompact(tree.closed.count)
        for id in tree.closed.sorted(by: >) { bytes.append(id) }
        bytes.appendCompact(tree.copies.count)
        if !tree.copies.isEmpty {
            for position in ordered.indices where tree.copies[ordered[position].id] != nil {
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
        if version == versionWithVectors { bytes.append(tree.vectors, of: ordered) }
        return bytes
    }

    private static func version(of tree: RevisionTree, hasFingerprints: Bool) -> UInt8 {
        if !tree.vectors.isEmpty { return versionWithVectors }
        if !tree.copies.isEmpty { return versionWithCopies }
        return hasFingerprints ? versionWithFingerprints : version
    }

    /// Returns the stored form of a tree with one more remote that has the current revision, without decoding the tree.
    ///
    /// - Returns: nil if the remote has a mark there already, or the bytes are of another version.
    package static func markCurrent(at remote: RevisionTree.Remote, in bytes: [UInt8]) -> [UInt8]? {
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

    fileprivate mutating func append(_ vectors: [RevisionID: VersionVector], of nodes: [RevisionTree.Node]) {
        appendCompact(vectors.count)
        for (position, node) in nodes.enumerated() {
            guard let vector = vectors[node.id]?.encoded() else { continue }
            appendCompact(position)
            appendCompact(vector.count)
            self += vector
        }
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
    static let storedText = maximumDigest / 2

    /// The number of bytes of a digest.
    static func lengthOfStored(_ length: Int) -> Int {
        length > storedText ? length - storedText : length
    }
}
