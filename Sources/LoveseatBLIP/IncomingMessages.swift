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
