/// The bounds of a connection.
package struct BLIPLimits: Hashable, Sendable {
    /// The maximum length of a message that is put together, in bytes. The body of a longer message is discarded, unless it is taken in
    /// pieces.
    package var largestMessage = 24 << 20
    /// The length from which a message counts as endless, in bytes. It ends the connection.
    package var endlessMessage = 96 << 20
    /// The maximum bytes of all unfinished incoming messages together, besides ``BLIPConnection/allowance``.
    package var incomingBytes = 32 << 20
    /// How many of these bytes are kept in memory, if there is a ``BodySpill``.
    package var memoryBytes = 8 << 20
    /// The bytes of unfinished messages beyond which only the oldest requests are acknowledged.
    package var unfinishedBytes = 16 << 20
    /// How many of the oldest requests are acknowledged then, so that they are finished before others go on.
    package var requestsAcknowledged = 16
    /// The maximum size of an inflated frame, in bytes.
    package var inflatedFrame = 24 << 20
    /// 0 never compresses, 9 compresses hardest.
    package var compressionLevel = 1

    package init() {}
}
