/// The difference between two strings: `N=` copies N bytes, `N-` skips them, `N+…|` inserts.
enum StringPatch {
    /// New strings shorter than this, in bytes, are sent whole.
    private static let minimumBytes = 60
    /// The maximum number of differences that are searched for. Finding more takes too long.
    private static let maximumEdits = 400

    /// The operations; nil if the new string itself is not longer.
    static func create(from old: String, to new: String) -> String? {
        let newLength = new.utf8.count
        guard newLength >= minimumBytes else { return nil }
        let (before, after) = (Array(old.unicodeScalars), Array(new.unicodeScalars))
        let prefix = zip(before, after).prefix { $0 == $1 }.count
        let shorter = min(before.count, after.count) - prefix
        let suffix = zip(before.reversed(), after.reversed()).prefix(shorter).prefix { $0 == $1 }.count
        let edits = ShortestEdit.between(
            before[prefix..<before.count - suffix],
            after[prefix..<after.count - suffix],
            atMost: maximumEdits
        )
        var writer = Writer(limit: newLength - 6)
        writer.keep(before[..<prefix])
        for edit in edits {
            writer.keep(edit.kept)
            writer.replace(edit.removed, by: edit.inserted)
        }
        writer.keep(before[(before.count - suffix)...])
        return writer.finish()
    }

    /// The new string; nil if the operations are not valid, or belong to another string.
    static func apply(_ patch: String, to old: String) -> String? {
        let (operations, bytes) = (Array(patch.utf8), Array(old.utf8))
        var (position, read) = (0, 0)
        var result: [UInt8] = []
        while position < operations.count {
            let digits = operations[position...].prefix { $0 &- 0x30 <= 9 }
            guard let count = Int(String(decoding: digits, as: UTF8.self)), digits.endIndex < operations.count
            else { return nil }
            position = digits.endIndex + 1
            switch operations[digits.endIndex] {
            case UInt8(ascii: "="):
                guard count <= bytes.count - read else { return nil }
                result += bytes[read..<read + count]
                read += count
            case UInt8(ascii: "-"):
                guard count <= bytes.count - read else { return nil }
                read += count
            case UInt8(ascii: "+"):
                guard count < operations.count - position,
                    operations[position + count] == UInt8(ascii: "|")
                else { return nil }
                result += operations[position..<position + count]
                position += count + 1
            default: return nil
            }
        }
        guard read == bytes.count else { return nil }
        return String(validating: result, as: UTF8.self)
    }

    /// Writes operations, and gives up once they are too long to be worth it.
    private struct Writer {
        let limit: Int
        var text = ""
        var kept = 0

        init(limit: Int) { self.limit = limit }

        private static func length(_ scalars: ArraySlice<Unicode.Scalar>) -> Int {
            scalars.reduce(0) { $0 + UTF8.width($1) }
        }

        mutating func keep(_ scalars: ArraySlice<Unicode.Scalar>) { kept += Self.length(scalars) }

        mutating func replace(
            _ removed: ArraySlice<Unicode.Scalar>,
            by inserted: ArraySlice<Unicode.Scalar>
        ) {
            flush()
            if !removed.isEmpty { text += "\(Self.length(removed))-" }
            if inserted.isEmpty { return }
            text += "\(Self.length(inserted))+"
            text.unicodeScalars.append(contentsOf: inserted)
            text += "|"
        }

        private mutating func flush() {
            if kept > 0 { text += "\(kept)=" }
            kept = 0
        }

        mutating func finish() -> String? {
            flush()
            return text.utf8.count < limit ? text : nil
        }
    }
}

/// The shortest way from one sequence to another (Myers, "An O(ND) Difference Algorithm and Its Variations", 1986).
enum ShortestEdit {
    typealias Scalars = ArraySlice<Unicode.Scalar>

    /// Scalars that stay, followed by scalars that are removed, and those that are inserted in their place.
    struct Edit: Equatable {
        var kept: Scalars
        var removed: Scalars
        var inserted: Scalars
    }

    /// The edits in order. If there are more than `limit` single ones, everything becomes one edit.
    static func between(_ old: Scalars, _ new: Scalars, atMost limit: Int) -> [Edit] {
        if old.isEmpty, new.isEmpty { return [] }
        let all = Edit(kept: old.prefix(0), removed: old, inserted: new)
        if old.isEmpty || new.isEmpty { return [all] }
        let (a, b) = (Array(old), Array(new))
        let most = min(limit, a.count + b.count)
        // farthest[k + most]: how far into `a` the best path on diagonal k has come.
        var farthest = [Int](repeating: 0, count: 2 * most + 2)
        var history: [[Int]] = []
        for edits in 0...most {
            history.append(Array(farthest[(most - edits)...(most + edits)]))
            for diagonal in stride(from: -edits, through: edits, by: 2) {
                let down =
                    diagonal == -edits
                    || (diagonal != edits && farthest[most + diagonal - 1] < farthest[most + diagonal + 1])
                var x = down ? farthest[most + diagonal + 1] : farthest[most + diagonal - 1] + 1
                while x < a.count, x - diagonal >= 0, x - diagonal < b.count, a[x] == b[x - diagonal] {
                    x += 1
                }
                farthest[most + diagonal] = x
                if x >= a.count, x - diagonal >= b.count { return path(a, b, history) }
            }
        }
        return [all]
    }

    /// Walks back from the end, and returns the steps from the start.
    private static func path(_ a: [Unicode.Scalar], _ b: [Unicode.Scalar], _ history: [[Int]]) -> [Edit] {
        var steps: [(kept: Range<Int>, removed: Range<Int>, inserted: Range<Int>)] = []
        var (x, y) = (a.count, b.count)
        for edits in stride(from: history.count - 1, through: 1, by: -1) {
            let before = history[edits]
            func at(_ diagonal: Int) -> Int {
                let index = diagonal + edits
                return before.indices.contains(index) ? before[index] : -1
            }
            let diagonal = x - y
            let down = diagonal == -edits || (diagonal != edits && at(diagonal - 1) < at(diagonal + 1))
            let fromDiagonal = down ? diagonal + 1 : diagonal - 1
            let fromX = at(fromDiagonal)
            let fromY = fromX - fromDiagonal
            let (midX, midY) = down ? (fromX, fromY + 1) : (fromX + 1, fromY)
            steps.append((midX..<x, fromX..<midX, fromY..<midY))
            (x, y) = (fromX, fromY)
        }
        var edits: [Edit] = []
        var kept = 0..<x
        for step in steps.reversed() {
            if kept.isEmpty, var last = edits.popLast() {
                last.removed =
                    a[last.removed.startIndex..<max(last.removed.endIndex, step.removed.upperBound)]
                last.inserted =
                    b[last.inserted.startIndex..<max(last.inserted.endIndex, step.inserted.upperBound)]
                edits.append(last)
            } else {
                edits.append(Edit(kept: a[kept], removed: a[step.removed], inserted: b[step.inserted]))
            }
            kept = step.kept
        }
        if !kept.isEmpty { edits.append(Edit(kept: a[kept], removed: [], inserted: [])) }
        return edits
    }
}
