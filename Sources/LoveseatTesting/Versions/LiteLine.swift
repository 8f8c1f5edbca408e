package import LoveseatBLIP

/// A connection of ``LiteDatabase`` in frames.
package final class LiteLine {
    package let session: LiteSession
    /// Called with every message in words; nil where nobody reads them.
    package var onMessage: ((String) -> Void)?
    private let connection = BLIPConnection()

    package init(_ session: LiteSession) { self.session = session }

    /// A frame came.
    package func receive(_ frame: [UInt8]) throws(BLIPError) {
        try connection.receive(frame)
        for event in connection.drainEvents() {
            onMessage?("> \(event)")
            session.receive(event)
        }
    }

    /// Has the session do what it does in time. The time is in seconds since 1970.
    package func work(time: Int) throws(BLIPError) {
        session.work(time: time)
        for output in session.drainOutput() {
            onMessage?("< \(output)")
            switch output {
            case .request(let message, let tag): try connection.send(message, tag: tag)
            case .reply(let message, let number): try connection.reply(message, to: number)
            case .failure(let error, let number, let isUrgent):
                try connection.reply(error, to: number, isUrgent: isUrgent)
            }
        }
    }

    /// The next frame to send; nil if there is none.
    package func nextFrame() throws(BLIPError) -> [UInt8]? { try connection.nextFrame() }
}
