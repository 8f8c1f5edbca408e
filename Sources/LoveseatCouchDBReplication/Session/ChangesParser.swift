package import LoveseatModel

/// A row of a remote's feed of changes.
package struct RemoteChange: Hashable, Sendable {
    package let sequence: RemoteSequence
    package let documentID: String
    /// The leaves, as the remote writes them.
    package let revisions: [String]
    /// Whether the winner is deleted.
    package let isDeleted: Bool
    /// Whether a gateway shows the document to this peer no more.
    package let isRevoked: Bool

    /// Whether the row is about a user or a role of a gateway, and not about a document. Such a row has no revisions.
    package var isPrincipal: Bool { Self.isPrincipal(documentID) }

    private static func isPrincipal(_ id: String) -> Bool {
        id.beginsExactly(with: "_user/") || id.beginsExactly(with: "_role/")
    }

    /// Nil if something that every row has is missing.
    init?(_ row: JSONElement) {
        guard let sequence = row["seq"], !sequence.isNull, let id = row["id"]?.string,
            let changes = row["changes"], changes.kind == .array
        else { return nil }
        self.sequence = RemoteSequence(sequence)
        documentID = id
        revisions = changes.items.compactMap { $0["rev"]?.string }
        guard revisions.count == changes.count, !revisions.isEmpty || Self.isPrincipal(id) else { return nil }
        isDeleted = row["deleted"]?.bool ?? false
        isRevoked = row["revoked"]?.bool ?? false
    }
}

/// A row of a remote's feed that cannot be read.
package struct UnreadableChange: Sendable {
    /// The sequence of the row before it; nil if it is the first one.
    package let after: RemoteSequence?
    /// The row's name in messages: its document's ID, as far as it is text.
    package let name: String
    package let reason: String
}

/// Reads a `normal` or `longpoll` answer of `_changes` as it arrives (protocol/couchdb.md §5). Holds one row at a time.
package struct ChangesParser: Sendable {
    /// The end of an answer.
    package struct End: Hashable, Sendable {
        /// Where to go on.
        package let lastSequence: RemoteSequence?
        /// How many changes follow, where the remote says so.
        package let pending: Int?

        package init(lastSequence: RemoteSequence?, pending: Int? = nil) {
            (self.lastSequence, self.pending) = (lastSequence, pending)
        }
    }

    private enum Place { case outside, rows, row, bare, done }

    /// The longest row that is read, in bytes: a document may have a thousand leaves.
    private static let maximumRow = 1 << 20
    /// The longest row that is passed over, in bytes.
    private static let maximumSkipped = 4 << 20
    private static let maximumRest = 64 << 10
    /// The maximum of rows in an answer that cannot be read: as many as a page has.
    private static let maximumUnreadable = ChangesQuery.pageSize

    private var place = Place.outside
    /// The answer without its rows.
    private var rest: [UInt8] = []
    private var row: [UInt8] = []
    private var length = 0
    private var last: RemoteSequence?
    /// The rows that could not be read, which are left out.
    package private(set) var unreadable: [UnreadableChange] = []
    /// Whether more rows cannot be read than are held. No more of the answer is read.
    package private(set) var isFull = false
    private var depth = 0
    private var isInString = false
    private var string = JSONStringBoundary()
    /// The last string outside of rows, which may be the key of what follows.
    private var lastString: [UInt8] = []

    package init() {}

    /// Reads the next bytes, and returns the rows that they complete.
    ///
    /// - Throws: `remoteError` for what is not an answer of `_changes`.
    package mutating func receive(_ bytes: [UInt8]) throws(LoveseatError) -> [RemoteChange] {
        var rows: [RemoteChange] = []
        for byte in bytes where !isFull {
            switch place {
            case .outside, .done: try readOutside(byte)
            case .rows: try readBetween(byte)
            case .row: if let done = try readRow(byte) { rows.append(done) }
            case .bare:
                if byte == UInt8(ascii: ",") || byte == UInt8(ascii: "]") {
                    _ = endRow()
                    try readBetween(byte)
                } else {
                    try keep(byte)
                }
            }
        }
        return rows
    }

    /// Ends the answer.
    ///
    /// - Throws: `webSocketAbnormalClose` if it was cut; `remoteError` if it was not read to its end.
    package func finish() throws(LoveseatError) -> End {
        guard !isFull else {
            throw LoveseatError(
                .remoteError,
                "more than \(Self.maximumUnreadable) rows of the peer's list of changes cannot be read (\(unreadable.first?.reason ?? "")): repair them there"
            )
        }
        guard place == .done, depth == 0, let text = try? JSONElement(parsing: rest) else {
            throw LoveseatError(.webSocketAbnormalClose, "the peer's list of changes ended early")
        }
        let last = text["last_seq"].flatMap { $0.isNull ? nil : RemoteSequence($0) }
        return End(lastSequence: last, pending: text["pending"]?.int)
    }

    private mutating func readOutside(_ byte: UInt8) throws(LoveseatError) {
        rest.append(byte)
        guard rest.count <= Self.maximumRest else { throw Self.malformed("it has no rows") }
        if isInString {
            isInString = !string.isEnd(byte)
            if isInString { lastString.append(byte) }
            return
        }
        switch byte {
        case UInt8(ascii: "\""): (isInString, lastString) = (true, [])
        case UInt8(ascii: "["), UInt8(ascii: "{"):
            depth += 1
            if depth == 1, byte != UInt8(ascii: "{") { throw Self.malformed("it is not an object") }
            if depth == 2, byte == UInt8(ascii: "["), place == .outside,
                lastString.elementsEqual("results".utf8)
            {
                place = .rows
            }
        case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
        default: break
        }
        if depth < 0 { throw Self.malformed("its brackets do not match") }
    }

    private mutating func readBetween(_ byte: UInt8) throws(LoveseatError) {
        switch byte {
        case UInt8(ascii: "{"), UInt8(ascii: "["): (row, place, depth) = ([byte], .row, 3)
        case UInt8(ascii: "\""): (row, place, depth, isInString) = ([byte], .row, 2, true)
        case UInt8(ascii: "]"):
            rest.append(byte)
            (place, depth) = (.done, 1)
        case UInt8(ascii: ","), UInt8(ascii: " "), 0x09, 0x0A, 0x0D: break
        default: (row, place) = ([byte], .bare)
        }
    }

    private mutating func keep(_ byte: UInt8) throws(LoveseatError) {
        length += 1
        if length < Self.maximumRow { row.append(byte) }
        guard length < Self.maximumSkipped else { throw Self.malformed("a row does not end") }
    }

    private mutating func readRow(_ byte: UInt8) throws(LoveseatError) -> RemoteChange? {
        try keep(byte)
        if isInString {
            isInString = !string.isEnd(byte)
            return !isInString && depth == 2 ? endRow() : nil
        }
        switch byte {
        case UInt8(ascii: "\""): isInString = true
        case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
        case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
        default: break
        }
        return depth == 2 ? endRow() : nil
    }

    private mutating func endRow() -> RemoteChange? {
        defer { (row, length, place) = ([], 0, .rows) }
        let reason: String
        do {
            guard length < Self.maximumRow else { throw Self.malformed("a row is too long") }
            let element = try JSONElement(parsing: row)
            guard let change = RemoteChange(element) else {
                throw Self.malformed("a row lacks its sequence, ID or revisions")
            }
            last = change.sequence
            return change
        } catch { reason = (error as? LoveseatError)?.message ?? "\(error)" }
        guard unreadable.count < Self.maximumUnreadable else {
            isFull = true
            return nil
        }
        unreadable.append(UnreadableChange(after: last, name: name, reason: reason))
        return nil
    }

    /// The ID of the row's document, or the beginning of the row, for messages.
    private var name: String {
        let mark = Array("\"id\":\"".utf8)
        let text = row.firstRange(of: mark).map { row[$0.upperBound...].prefix { $0 != UInt8(ascii: "\"") } }
        return String(decoding: (text ?? row[...]).prefix(80), as: UTF8.self)
    }

    private static func malformed(_ why: String) -> LoveseatError {
        LoveseatError(.remoteError, "the peer's list of changes is malformed: \(why)")
    }
}
