import LoveseatCore

extension BlockingThreads {
    /// The threads of the decisions of handshakes, in which an app's closure may take several seconds.
    static let handshakes = BlockingThreads(label: "loveseat.handshake")
}
