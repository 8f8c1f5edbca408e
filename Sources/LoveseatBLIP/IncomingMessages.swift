/// A message being put together from its frames.
package struct IncomingMessage: Sendable {
    package let type: MessageType
    package let flags: FrameFlags
    private(set) var properties: MessageProperties?
    private(set) var body: [UInt8] = []
    private var head: [UInt8] = []
    private var receivedBytes: UInt64 = 0
    private var unacknowledged: UInt64 = 0
    /// The bytes of the body that came first and are kept elsewhere.
    var spilledBytes = 0
    /// The bytes of the body that were thrown away because the message is too large.
    var discardedBytes = 0

    /// After how many bytes of a message they are acknowledged (blip.md §9).
    static let acknowledgementInterval: UInt64 = 50_000

    package init(_ frame: IncomingFrame) {
        type = frame.type
        flags = frame.flags
    }

    /// The bytes that are in memory.
    var bufferedBytes: Int { head.count + body.count }

    /// Adds a frame, and returns the number of bytes to acknowledge if it is time to.
    package mutating func add(_ frame: IncomingFrame) throws(BLIPError) -> UInt64? {
        receivedBytes += UInt64(frame.wireSize)
        unacknowledged += UInt64(frame.wireSize)
        if properties != nil {
            body.append(contentsOf: frame.payload)
        } else if head.isEmpty {
            // Most messages are one frame.
            if try !readProperties(frame.payload) { head = Array(frame.payload) }
        } else {
            head.append(contentsOf: frame.payload)
            if try readProperties(head[...]) { head = [] }
        }
        if !frame.flags.contains(.moreComing), properties == nil {
            throw .message("it ends before its properties do")
        }
        guard unacknowledged >= Self.acknowledgementInterval else { return nil }
        unacknowledged = 0
        return receivedBytes
    }

    /// Reads the beginning of a message; false if it ends before the properties do.
    private mutating func readProperties(_ beginning: ArraySlice<UInt8>) throws(BLIPError) -> Bool {
        var rest = beginning
        let length = try rest.readVarInt()
        guard length <= UInt64(MessageProperties.maximumEncodedSize) else {
            throw .tooLarge("\(length) bytes of properties")
        }
        guard rest.count >= Int(length) else { return false }
        properties = try MessageProperties(encoded: rest.prefix(Int(length)))
        body = Array(rest.dropFirst(Int(length)))
        return true
    }

    /// Takes the body received so far, for a consumer that does not wait for the whole.
    mutating func drainBody() -> [UInt8] {
        defer { body = [] }
        return body
    }

    package var message: Message {
        Message(
            properties ?? [:],
            body: body,
            isUrgent: flags.contains(.urgent),
            isCompressed: flags.contains(.compressed),
            noReply: flags.contains(.noReply)
        )
    }
}

/// The messages of which some frames are still to come.
struct UnfinishedMessages: Sendable {
    /// The number of the last request that came.
    var lastRequest: UInt64 = 0
    var requests: [UInt64: IncomingMessage] = [:]
    var responses: [UInt64: IncomingMessage] = [:]
    /// The bytes in memory, and those of bodies that are kept elsewhere.
    var bufferedBytes = 0
    var spilledBytes = 0
    /// The numbers of the requests in ``requests``, ascending.
    var order: [UInt64] = []
    /// The acknowledgements of requests that are held back until older requests are finished.
    var heldAcknowledgements: [UInt64: UInt64] = [:]

    var count: Int { requests.count + responses.count }
    var bytes: Int { bufferedBytes + spilledBytes }

    /// The keys of the bodies that are kept elsewhere.
    var spilledKeys: [UInt64] {
        requests.filter { $0.value.spilledBytes > 0 }.map { $0.key << 1 }
            + responses.filter { $0.value.spilledBytes > 0 }.map { $0.key << 1 | 1 }
    }

    /// Whether a request is to be acknowledged only when older ones are finished: a peer may send any number at once, each
    /// as far as it gets without acknowledgement (blip.md §9).
    func mustWait(_ number: UInt64, _ limits: BLIPLimits) -> Bool {
        bytes > limits.unfinishedBytes && order.count > limits.requestsAcknowledged
            && number > order[limits.requestsAcknowledged - 1]
    }

    /// Notes that a request is whole. Returns the acknowledgements that need not wait any more, in order.
    mutating func finish(_ number: UInt64, _ limits: BLIPLimits) -> [(number: UInt64, bytes: UInt64)] {
        if let index = order.firstIndex(of: number) { order.remove(at: index) }
        heldAcknowledgements[number] = nil
        if heldAcknowledgements.isEmpty { return [] }
        let due = heldAcknowledgements.sorted { $0.key < $1.key }.filter { !mustWait($0.key, limits) }
        for (number, _) in due { heldAcknowledgements[number] = nil }
        return due.map { ($0.key, $0.value) }
    }

    mutating func removeAll() {
        (requests, responses) = ([:], [:])
        (order, heldAcknowledgements) = ([], [:])
    }
}
