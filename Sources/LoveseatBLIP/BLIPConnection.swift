import LoveseatAssertions

/// One end of a BLIP connection (blip.md §3–§12), without the socket: frames in, frames out.
///
/// ```
///  send, reply ──▶ outgoing queue ──▶ nextFrame()          socket ──▶ receive(_:) ──▶ drainEvents()
///                     ▲      │ 128,000 bytes unacknowledged
///                     └─ icebox ◀┘
/// ```
/// It is a class, since it owns two streams of deflate. Its owner calls it from one place at a time.
package final class BLIPConnection {
    /// A sender's own name for a request, which comes back with the response.
    package typealias Tag = UInt64

    /// An event for the owner of the connection.
    package enum Event: Hashable, Sendable {
        /// The peer sent a request. Answer it with ``BLIPConnection/reply(_:to:)`` unless the message says no reply.
        case request(number: UInt64, Message)
        /// The whole answer to one of our requests.
        case response(Tag, Message)
        /// The answer is an error.
        case failure(Tag, ReplyError)
        /// A piece of the answer to a request sent with `inPieces`.
        case piece(Tag, [UInt8], isLast: Bool)
        /// The last frame of a request was handed out.
        case sent(Tag)
        /// A reply begun by ``BLIPConnection/beginReply(_:to:)`` has room for more of its body.
        case wantsBody(number: UInt64)
    }

    private static let largestPayload = 16_300
    private static let smallPayload = 4_012
    /// How much of a message may be under way unacknowledged (blip.md §9).
    package static let window: UInt64 = 128_000
    /// The minimum size of a body that is moved to the spill, in bytes.
    private static let spillSize = 32 << 10

    /// The bytes of unfinished messages that the peer was asked for. They do not count as a violation, however many arrive at once.
    package var allowance = 0
    private let spill: (any BodySpill)?
    private let limits: BLIPLimits
    private var encoder: FrameEncoder
    private var decoder: FrameDecoder

    private(set) var outgoing = OutgoingMessages()
    private var acknowledgements: [[UInt8]] = []
    private(set) var answers = AwaitedAnswers()
    private(set) var incoming = UnfinishedMessages()
    /// Requests whose answers are urgent because the requests were.
    private var urgentRequests: Set<UInt64> = []
    private var events: [Event] = []
    var invariantPace = InvariantPace()

    /// `spill`: takes the bodies that are too much for memory; without it they stay there. `deflater` and `checksum`: replace zlib's.
    package init(
        limits: BLIPLimits = BLIPLimits(),
        spill: (any BodySpill)? = nil,
        deflater: (any Deflater)? = nil,
        checksum: ChecksumFunction? = nil
    ) {
        self.limits = limits
        self.spill = spill
        encoder = FrameEncoder(
            compressionLevel: limits.compressionLevel,
            deflater: deflater,
            checksum: checksum
        )
        decoder = FrameDecoder(largestFrame: limits.inflatedFrame, checksum: checksum)
    }

    // MARK: Sending

    /// Queues a request. With `inPieces`, the answer's body comes in ``Event/piece(_:_:isLast:)`` events.
    ///
    /// - Throws: ``BLIPError/tooLarge(_:)`` for properties past 102,400 bytes.
    package func send(_ message: Message, tag: Tag?, inPieces: Bool = false) throws(BLIPError) {
        if let tag, inPieces { answers.tagsInPieces.insert(tag) }
        try enqueue(message, type: .request, number: nil, tag: tag, isWhole: true)
    }

    /// Queues the answer to a peer's request.
    package func reply(_ message: Message, to number: UInt64) throws(BLIPError) {
        try enqueue(message, type: .response, number: number, tag: nil, isWhole: true)
    }

    /// Queues an error as the answer.
    package func reply(_ error: ReplyError, to number: UInt64, isUrgent: Bool = false) throws(BLIPError) {
        var message = error.message
        message.isUrgent = isUrgent
        try enqueue(message, type: .error, number: number, tag: nil, isWhole: true)
    }

    /// Begins an answer whose body follows by ``supply(_:isLast:for:)``, which is asked for at once, and again each time that half a
    /// window is left.
    ///
    /// `window`: how many bytes may be on their way unacknowledged.
    package func beginReply(_ message: Message, to number: UInt64, window: UInt64 = window) throws(BLIPError)
    {
        try enqueue(message, type: .response, number: number, tag: nil, isWhole: false, window: window)
        askForBody(number)
    }

    /// Adds to a begun reply.
    package func supply(_ bytes: [UInt8], isLast: Bool, for number: UInt64) {
        if !outgoing.supply(bytes, isLast: isLast, for: number) {
            impossible("more is supplied of the answer to \(number), which is not being sent")
        }
    }

    private func enqueue(
        _ message: Message,
        type: MessageType,
        number: UInt64?,
        tag: Tag?,
        isWhole: Bool,
        window: UInt64 = window
    ) throws(BLIPError) {
        let size = message.properties.encodedSize
        guard size <= MessageProperties.maximumEncodedSize else {
            throw .tooLarge("\(size) bytes of properties")
        }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(size + message.body.count + 3)
        bytes.appendVarInt(UInt64(size))
        message.properties.encode(to: &bytes)
        bytes.append(contentsOf: message.body)
        var flags: FrameFlags = []
        if message.isUrgent || number.map({ urgentRequests.remove($0) != nil }) == true {
            flags.insert(.urgent)
        }
        if message.isCompressed { flags.insert(.compressed) }
        if message.noReply { flags.insert(.noReply) }
        outgoing.queue.append(
            OutgoingMessage(
                type: type,
                number: number,
                tag: tag,
                flags: flags,
                pending: bytes[...],
                window: window,
                isWhole: isWhole
            )
        )
    }

    /// Takes back requests that have not begun to be sent.
    package func cancelUnsent(_ tags: Set<Tag>) {
        let isUnsent = { (message: OutgoingMessage) in
            !message.hasBegun && message.tag.map { tags.contains($0) } == true
        }
        while outgoing.queue.remove(where: isUnsent) != nil {}
    }

    private func askForBody(_ number: UInt64) {
        _ = outgoing.queue.update(where: OutgoingMessages.isReply(to: number)) { $0.awaitsSupply = true }
        events.append(.wantsBody(number: number))
    }

    /// Whether there is nothing to send now.
    package var hasNothingToSend: Bool { acknowledgements.isEmpty && outgoing.queue.isEmpty }

    /// The bytes queued in memory.
    package var queuedBytes: Int { outgoing.bytes }

    /// The next frame to hand to the transport; nil if there is nothing to send now.
    ///
    /// - Throws: ``BLIPError/compression`` if zlib fails, which ends the connection.
    package func nextFrame() throws(BLIPError) -> [UInt8]? {
        if !acknowledgements.isEmpty { return acknowledgements.removeFirst() }
        while var message = outgoing.queue.popFirst() {
            if message.pending.isEmpty, !message.isWhole, message.hasBegun {
                outgoing.starved.append(message)
                continue
            }
            let mayBeLarge = message.isUrgent || outgoing.queue.first?.isUrgent != true
            let chunk = message.pending.prefix(mayBeLarge ? Self.largestPayload : Self.smallPayload)
            message.pending = message.pending.dropFirst(chunk.count)
            let isLast = message.pending.isEmpty && message.isWhole
            let number = beginIfNew(&message)
            let flags = isLast ? message.flags : message.flags.union(.moreComing)
            let frame = try encoder.frame(number: number, type: message.type, flags: flags, payload: chunk)
            account(for: frame, of: &message, number: number)
            if isLast {
                if let tag = message.tag { events.append(.sent(tag)) }
            } else {
                if !message.isWhole, !message.awaitsSupply, message.pending.count < message.window / 2 {
                    message.awaitsSupply = true
                    events.append(.wantsBody(number: number))
                }
                if message.unacknowledged >= message.window {
                    outgoing.icebox.append(message)
                } else {
                    outgoing.queue.append(message)
                }
            }
            return frame
        }
        return nil
    }

    private func beginIfNew(_ message: inout OutgoingMessage) -> UInt64 {
        message.hasBegun = true
        if let number = message.number { return number }
        let number = answers.newRequest()
        message.number = number
        if let tag = message.tag, !message.flags.contains(.noReply) {
            answers.awaitAnswer(to: number, tag)
        }
        return number
    }

    private func account(for frame: [UInt8], of message: inout OutgoingMessage, number: UInt64) {
        let bytes = UInt64(frame.count - number.varIntSize - 1)
        message.sentBytes += bytes
        message.unacknowledged += bytes
    }

    // MARK: Receiving

    /// Returns the events since the last call, in order.
    package func drainEvents() -> [Event] {
        var taken: [Event] = []
        drainEvents(&taken)
        return taken
    }

    /// Exchanges the events since the last call for an empty array, whose memory is used for the next events.
    package func drainEvents(_ taken: inout [Event]) {
        taken.removeAll(keepingCapacity: true)
        swap(&taken, &events)
    }

    /// Takes one frame from the transport.
    ///
    /// - Throws: ``BLIPError`` if the peer broke the rules; close the connection then.
    package func receive(_ bytes: [UInt8]) throws(BLIPError) {
        // A newer peer may send frames of a type that is not known here.
        guard let frame = try decoder.decode(bytes) else { return }
        switch frame.type {
        case .request: try receiveRequest(frame)
        case .response, .error: try receiveResponse(frame)
        case .acknowledgeRequest, .acknowledgeResponse: receiveAcknowledgement(frame)
        }
        if AssertionFailures.areFatal { checkInvariants() }
    }

    private func receiveRequest(_ frame: IncomingFrame) throws(BLIPError) {
        let number = frame.number
        var message: IncomingMessage
        // Nothing else may hold the message, or each frame would copy it.
        let isFirst = incoming.requests[number] == nil
        if let partial = incoming.requests.removeValue(forKey: number) {
            message = partial
        } else if number == incoming.lastRequest + 1 {
            incoming.lastRequest += 1
            message = IncomingMessage(frame)
        } else {
            throw .message("request \(number) came after request \(incoming.lastRequest)")
        }
        try add(frame, to: &message, key: number << 1, acknowledgement: .acknowledgeRequest)
        if frame.flags.contains(.moreComing) {
            incoming.requests[number] = message
            if isFirst { incoming.order.append(number) }
            return
        }
        let whole = try whole(message, key: number << 1)
        if !isFirst { finish(number) }
        if whole.isUrgent, !whole.noReply { urgentRequests.insert(number) }
        events.append(.request(number: number, whole))
    }

    private func receiveResponse(_ frame: IncomingFrame) throws(BLIPError) {
        // A peer may answer twice, or answer a request that wants no answer.
        guard let (tag, inPieces) = answers.awaited[frame.number] else {
            guard frame.number <= answers.lastRequest else {
                throw .message("an answer to request \(frame.number), which was never sent")
            }
            return
        }
        let key = frame.number << 1 | 1
        var message = incoming.responses.removeValue(forKey: frame.number) ?? IncomingMessage(frame)
        let isStreamed = inPieces && message.type == .response
        try add(frame, to: &message, key: isStreamed ? nil : key, acknowledgement: .acknowledgeResponse)
        let isLast = !frame.flags.contains(.moreComing)
        if isStreamed, message.properties != nil {
            incoming.bufferedBytes -= message.bufferedBytes
            events.append(.piece(tag, message.drainBody(), isLast: isLast))
        }
        if !isLast {
            incoming.responses[frame.number] = message
            return
        }
        answers.awaited[frame.number] = nil
        if isStreamed { return }
        let whole = try whole(message, key: key)
        if whole.isTooLarge {
            events.append(.failure(tag, ReplyError("BLIP", 413, "the answer is too large")))
        } else if message.type == .error {
            events.append(.failure(tag, ReplyError(whole)))
        } else {
            events.append(.response(tag, whole))
        }
    }

    /// `key`: under which the body is kept if it is too much for memory; nil if it is taken in pieces.
    private func add(
        _ frame: IncomingFrame,
        to message: inout IncomingMessage,
        key: UInt64?,
        acknowledgement: MessageType
    ) throws(BLIPError) {
        let before = message.bufferedBytes
        let due = try message.add(frame)
        incoming.bufferedBytes += message.bufferedBytes - before
        if let key { try bound(&message, key) }
        let bytes = incoming.bytes + 256 * incoming.count
        guard bytes <= limits.incomingBytes + allowance else {
            throw .tooLarge("more than \(limits.incomingBytes) bytes of messages that were not asked for")
        }
        // A frame is acknowledged only when enough of its message has come.
        guard let due else { return }
        if acknowledgement == .acknowledgeRequest, incoming.mustWait(frame.number, limits) {
            incoming.heldAcknowledgements[frame.number] = due
        } else {
            acknowledgements.append(
                FrameEncoder.acknowledgement(number: frame.number, type: acknowledgement, bytes: due)
            )
        }
    }

    /// Moves a body to the spill if memory is short, or discards it if it is too long.
    private func bound(_ message: inout IncomingMessage, _ key: UInt64) throws(BLIPError) {
        let length = message.bufferedBytes + message.spilledBytes + message.discardedBytes
        if length > limits.largestMessage {
            guard length <= limits.endlessMessage else {
                throw .tooLarge("a message of more than \(limits.endlessMessage) bytes")
            }
            spill?.drop(key)
            incoming.spilledBytes -= message.spilledBytes
            incoming.bufferedBytes -= message.bufferedBytes
            message.discardedBytes += message.spilledBytes + message.drainBody().count
            message.spilledBytes = 0
            incoming.bufferedBytes += message.bufferedBytes
        } else if let spill, incoming.bufferedBytes > limits.memoryBytes, message.body.count >= Self.spillSize
        {
            let body = message.drainBody()
            do { try spill.append(body, to: key) } catch { throw .spill("\(error)") }
            message.spilledBytes += body.count
            incoming.spilledBytes += body.count
            incoming.bufferedBytes -= body.count
        }
    }

    /// A message with all of its body.
    private func whole(_ message: IncomingMessage, key: UInt64) throws(BLIPError) -> Message {
        incoming.bufferedBytes -= message.bufferedBytes
        var whole = message.message
        whole.isTooLarge = message.discardedBytes > 0
        guard message.spilledBytes > 0, let spill else { return whole }
        incoming.spilledBytes -= message.spilledBytes
        do { whole.body = try spill.remove(key) + whole.body } catch { throw .spill("\(error)") }
        return whole
    }

    /// A request that came in several frames is whole.
    private func finish(_ number: UInt64) {
        for (waiting, bytes) in incoming.finish(number, limits) {
            acknowledgements.append(
                FrameEncoder.acknowledgement(number: waiting, type: .acknowledgeRequest, bytes: bytes)
            )
        }
    }

    private func receiveAcknowledgement(_ frame: IncomingFrame) {
        var payload = frame.payload
        // Malformed, unknown and exaggerated acknowledgements are ignored (blip.md §9, §12).
        guard let bytes = try? payload.readVarInt() else { return }
        let isRequest = frame.type == .acknowledgeRequest
        outgoing.acknowledge(bytes, of: frame.number, isRequest: isRequest)
    }

    /// Ends the connection, and returns the tags of all requests that will not be answered.
    package func disconnect() -> [Tag] {
        let tags = Set(answers.awaited.values.map(\.tag) + outgoing.queue.tags + outgoing.icebox.tags)
        for key in incoming.spilledKeys { spill?.drop(key) }
        answers.awaited = [:]
        incoming.removeAll()
        urgentRequests = []
        outgoing = OutgoingMessages()
        acknowledgements = []
        events = []
        return tags.sorted()
    }
}
