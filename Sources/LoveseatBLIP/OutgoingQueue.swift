/// A message on its way out, cut into frames as its turns come.
struct OutgoingMessage: Sendable {
    let type: MessageType
    /// Given when the first frame is made (blip.md §7): requests then begin in number order whatever overtook what.
    var number: UInt64?
    /// The sender's name for a request.
    let tag: BLIPConnection.Tag?
    let flags: FrameFlags
    /// Plain bytes that are not in a frame yet.
    var pending: ArraySlice<UInt8>
    /// How many bytes may be on their way unacknowledged.
    let window: UInt64
    /// Whether `pending` ends the message, or more will be supplied.
    var isWhole: Bool
    /// Whether the supplier was asked for more and has not answered.
    var awaitsSupply = false
    var hasBegun = false
    /// Bytes after the header, as sent, of all frames so far.
    var sentBytes: UInt64 = 0
    var unacknowledged: UInt64 = 0

    var isUrgent: Bool { flags.contains(.urgent) }
}

/// Interleaves messages: urgent ones first, ordinary ones in turns (blip.md §8).
struct OutgoingQueue: Sendable {
    private var messages: [OutgoingMessage] = []
    /// The bytes of all messages that are not in a frame yet.
    private(set) var bytes = 0

    var isEmpty: Bool { messages.isEmpty }
    var first: OutgoingMessage? { messages.first }
    var tags: [BLIPConnection.Tag] { messages.compactMap(\.tag) }

    /// Whether ``bytes`` is the sum of the messages' pending bytes.
    var isSumRight: Bool { bytes == messages.reduce(0) { $0 + $1.pending.count } }

    func allSatisfy(_ holds: (OutgoingMessage) -> Bool) -> Bool { messages.allSatisfy(holds) }

    mutating func append(_ message: OutgoingMessage) {
        bytes += message.pending.count
        guard message.isUrgent, messages.count > 1 else { return messages.append(message) }
        // Exactly one ordinary message stays between two urgent ones, and a new request never overtakes an older one
        // that has not begun.
        var position = messages.count - 1
        while position > 0 {
            let scanned = messages[position]
            if scanned.isUrgent {
                position += position + 1 < messages.count ? 2 : 1
                break
            }
            if !message.hasBegun, !scanned.hasBegun {
                position += 1
                break
            }
            position -= 1
        }
        messages.insert(message, at: max(1, min(position, messages.count)))
    }

    mutating func popFirst() -> OutgoingMessage? {
        guard !messages.isEmpty else { return nil }
        bytes -= messages[0].pending.count
        return messages.removeFirst()
    }

    /// Changes the first message that matches, where it stands.
    mutating func update(where matches: (OutgoingMessage) -> Bool, _ change: (inout OutgoingMessage) -> Void)
        -> Bool
    {
        guard let index = messages.firstIndex(where: matches) else { return false }
        bytes -= messages[index].pending.count
        change(&messages[index])
        bytes += messages[index].pending.count
        return true
    }

    mutating func remove(where matches: (OutgoingMessage) -> Bool) -> OutgoingMessage? {
        guard let index = messages.firstIndex(where: matches) else { return nil }
        bytes -= messages[index].pending.count
        return messages.remove(at: index)
    }
}

/// The messages that are being sent.
struct OutgoingMessages: Sendable {
    var queue = OutgoingQueue()
    /// Messages with as much under way as may be unacknowledged.
    var icebox = OutgoingQueue()
    /// Replies that wait for their body.
    var starved = OutgoingQueue()

    /// The bytes queued in memory.
    var bytes: Int { queue.bytes + icebox.bytes + starved.bytes }

    static func isReply(to number: UInt64) -> (OutgoingMessage) -> Bool {
        { $0.type == .response && $0.number == number }
    }

    /// Adds to a begun reply; false if it is not being sent.
    mutating func supply(_ bytes: [UInt8], isLast: Bool, for number: UInt64) -> Bool {
        let matches = Self.isReply(to: number)
        let add = { (message: inout OutgoingMessage) in
            message.pending += bytes
            message.isWhole = isLast
            message.awaitsSupply = false
        }
        if var message = starved.remove(where: matches) {
            add(&message)
            queue.append(message)
            return true
        }
        return queue.update(where: matches, add) || icebox.update(where: matches, add)
    }

    /// Notes that the peer has so many bytes of a message.
    mutating func acknowledge(_ bytes: UInt64, of number: UInt64, isRequest: Bool) {
        let matches = { (message: OutgoingMessage) in
            message.number == number && message.hasBegun && (message.type == .request) == isRequest
        }
        let acknowledge = { (message: inout OutgoingMessage) in
            if bytes > message.sentBytes { return }
            message.unacknowledged = min(message.unacknowledged, message.sentBytes - bytes)
        }
        if var message = icebox.remove(where: matches) {
            acknowledge(&message)
            if message.unacknowledged < message.window {
                queue.append(message)
            } else {
                icebox.append(message)
            }
        } else if !queue.update(where: matches, acknowledge) {
            _ = starved.update(where: matches, acknowledge)
        }
    }
}

/// The requests that the peer has not answered.
struct AwaitedAnswers: Sendable {
    private(set) var lastRequest: UInt64 = 0
    var awaited: [UInt64: (tag: BLIPConnection.Tag, inPieces: Bool)] = [:]
    /// The requests that were not begun, and whose answers come in pieces.
    var tagsInPieces: Set<BLIPConnection.Tag> = []

    /// The number of the next request.
    mutating func newRequest() -> UInt64 {
        lastRequest += 1
        return lastRequest
    }

    mutating func awaitAnswer(to number: UInt64, _ tag: BLIPConnection.Tag) {
        awaited[number] = (tag, tagsInPieces.remove(tag) != nil)
    }
}
