package import LoveseatBLIP

/// A connection of ``LiteDatabase`` in frames.
package final class LiteLine {
    package let session: LiteSession
    /// Called with every message in words; nil where nobody reads them.
    package var onMessage: ((String) -> Void)?
    /// Called with everything that comes. The session is given the result.
    var onArrival: ((BLIPConnection.Event) -> BLIPConnection.Event)?
    /// The number of revisions that were sent or received.
    private(set) var revisions = 0
    /// Whether everything that the session said has been passed on.
    private(set) var isQuiet = true
    private let connection = BLIPConnection()

    package init(_ session: LiteSession) { self.session = session }

    /// A frame came.
    package func receive(_ frame: [UInt8]) throws(BLIPError) {
        try connection.receive(frame)
        for arrived in connection.drainEvents() {
            let event = onArrival?(arrived) ?? arrived
            onMessage?("> \(event)")
            if case .request(_, let message) = event, message.profile == "rev" { revisions += 1 }
            session.receive(event)
        }
    }

    /// Has the session do what it does in time. The time is in seconds since 1970.
    package func work(time: Int) throws(BLIPError) {
        session.work(time: time)
        for output in session.drainOutput() {
            onMessage?("< \(output)")
            isQuiet = false
            switch output {
            case .request(let message, let tag):
                if message.profile == "rev" { revisions += 1 }
                try connection.send(message, tag: tag)
            case .reply(let message, let number): try connection.reply(message, to: number)
            case .failure(let error, let number, let isUrgent):
                try connection.reply(error, to: number, isUrgent: isUrgent)
            }
        }
    }

    /// The next frame to send; nil if there is none.
    package func nextFrame() throws(BLIPError) -> [UInt8]? {
        let frame = try connection.nextFrame()
        isQuiet = frame == nil
        return frame
    }
}
