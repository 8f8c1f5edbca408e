import LoveseatAssertions
package import LoveseatReplication

/// A direction of a session as a value: it takes answers and returns requests. The driver sends them.
package protocol RequestMachine: SendableMetatype {
    associatedtype Request: Sendable
    associatedtype Answer: Sendable

    static var isPush: Bool { get }
    /// Whether there is nothing to do until something outside of the session changes.
    var isCaughtUp: Bool { get }
    /// Does what can be done without the remote, one page at most. Call it after each answer.
    mutating func goOn() throws
    /// The next request to send; nil if there is none now. `limit`: how many requests the remote takes at once.
    mutating func next(atOnce limit: Int) throws -> RequestQueue<Request>.Numbered?
    mutating func receive(_ answer: Answer, to number: Int) throws
    /// The reports since the last ``drainReports()``, in their order.
    var reports: [SessionReport] { get set }
}

extension RequestMachine {
    /// Returns what happened since the last call, in its order.
    package mutating func drainReports() -> [SessionReport] {
        defer { reports = [] }
        return reports
    }
}

/// A report of a machine to its driver.
package enum SessionReport: Hashable, Sendable {
    /// Work begins or ends.
    case busy(Bool)
    /// Units of work were found among so many changes.
    case found(Int, changes: Int)
    case finished(Int, bytes: Int = 0, documents: Int = 0)
    case document(DocumentEvent)
    /// Have the app resolve a document's conflict. Nothing else is done before.
    case resolve(ConflictNotice)
    /// The checkpoint may be saved. `isLast`: nothing more is known that is to be done.
    case checkpoint(isLast: Bool)
}

/// The requests of a machine: those that wait, and those that are under way.
package struct RequestQueue<Request: Sendable> {
    package struct Numbered: Sendable {
        package let number: Int
        package let request: Request
    }

    private var waiting: ArraySlice<Request> = []
    private var underWay: [Int: Request] = [:]
    private var last = 0

    package init() {}

    package var isEmpty: Bool { waiting.isEmpty && underWay.isEmpty }

    package mutating func append(_ requests: some Sequence<Request>) { waiting.append(contentsOf: requests) }

    /// Adds requests that take the place of one that was answered.
    package mutating func prepend(_ requests: [Request]) { waiting = requests + waiting }

    /// Takes the next request, if fewer than `limit` are under way.
    package mutating func next(atOnce limit: Int) -> Request? {
        underWay.count < limit ? waiting.popFirst() : nil
    }

    package mutating func begin(_ request: Request) -> Numbered {
        last += 1
        underWay[last] = request
        return Numbered(number: last, request: request)
    }

    /// Returns the request that was answered.
    package mutating func end(_ number: Int) -> Request? {
        guard let request = underWay.removeValue(forKey: number) else {
            impossible("request \(number) is answered, and \(underWay.keys.sorted()) are under way")
            return nil
        }
        return request
    }
}
