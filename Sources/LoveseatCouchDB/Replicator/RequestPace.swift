/// How fast a server lets itself be asked: it answers 429, or 503 with a time, to what is too much for it.
///
/// A request waits only for a short time that the server names. Any other refusal is an error like others that may pass: the replicator shows it,
/// and connects again later.
struct RequestPace: Sendable {
    /// The maximum number of requests at once.
    private static let standard = 8
    /// Answers after which one request more is tried at once.
    private static let patience = 20
    /// The longest time that one request waits for its turn, in seconds, if the server asks for it.
    static let maximumWait = 30.0
    /// How long the other requests wait after an answer 429 that names no time, in seconds.
    static let unnamedWait = 0.25

    private(set) var requestsAtOnce = Self.standard
    /// In time of the replication's runtime.
    private(set) var notBefore: Duration?
    private var answers = 0

    /// How long to wait after an answer that names a time, in seconds.
    static func wait(told: UInt) -> Double { max(Double(told), 0.5) }

    /// The server refused a request: the others wait as well, and fewer are sent at once.
    mutating func slowDown(for seconds: Double, now: Duration) {
        let end = now + .seconds(seconds)
        notBefore = max(notBefore ?? end, end)
        requestsAtOnce = max(1, requestsAtOnce / 2)
        answers = 0
    }

    mutating func noteAnswer() {
        if requestsAtOnce >= Self.standard { return }
        answers += 1
        if answers < Self.patience { return }
        (answers, requestsAtOnce) = (0, requestsAtOnce + 1)
    }
}
