package import LoveseatModel

/// The connections of a process: what they do, how fast, and what has happened. Times are milliseconds since 1970.
///
/// Reads no clock: sightings and seconds arrive as method calls.
package struct ConnectionTable: Sendable {
    struct Line: Sendable {
        var sighting: PeerSighting
        let since: Int64
        /// When the peer was last known to have everything.
        var upToDate: Int64?
        /// Documents that could not be replicated since the connection began.
        var failures = FailedDocuments()
        /// Nil if that is not known.
        var pending: Pending?
        /// Since when something has been pending; nil if nothing is.
        var behindSince: Int64?
        /// As of the last second.
        var counted = RateHistory.Sample()
        var rate = RateHistory.Sample()

        var isBehind: Bool { sighting.total > sighting.completed || pending?.count ?? 0 > 0 }

        mutating func noteBehind(at now: Int64) { behindSince = isBehind ? behindSince ?? now : nil }
    }

    /// How many documents are on their way, or wait for their turn.
    package struct Pending: Sendable {
        let outgoing: Int
        let incoming: Int
        var count: Int { outgoing + incoming }

        package init(outgoing: Int, incoming: Int) { (self.outgoing, self.incoming) = (outgoing, incoming) }
    }

    private(set) var lines: [String: Line] = [:]
    private(set) var past = PastPeers()
    private(set) var log = PeerEventLog()
    private(set) var rates = RateHistory()
    package static let maximumConnections = 2_000

    package init() {}

    package init(past: JSONValue?) { self.past = PastPeers(past) }

    /// Whether ``past`` has changed since the last call.
    package mutating func drainPastChange() -> JSONValue? { past.drainChange() }

    /// Adds what was seen of a connection.
    package mutating func update(_ sighting: PeerSighting, at now: Int64) {
        let old = lines[sighting.key]
        if sighting.activity == .stopped {
            lines[sighting.key] = nil
            // The connection was one too many to be listed, or its end was seen before.
            guard var line = old else { return }
            line.sighting = sighting
            let error = sighting.error.map { ": \($0)" } ?? ""
            log.add(
                .disconnected,
                sighting.title,
                "disconnected after \(sighting.sent) sent and \(sighting.received) received\(error)",
                on: sighting.key,
                at: now
            )
            return past.note(line, at: now)
        }
        if old == nil, lines.count >= Self.maximumConnections { return }
        var line = old ?? Line(sighting: sighting, since: sighting.since ?? now)
        if old == nil {
            let side = sighting.direction == .incoming ? "has connected" : "is being connected to"
            log.add(.connected, sighting.title, "\(side), over \(sighting.wire)", on: sighting.key, at: now)
        }
        let before = old?.sighting.activity
        line.sighting = sighting
        line.noteBehind(at: now)
        switch sighting.activity {
        case .idle where sighting.completed >= sighting.total:
            line.upToDate = now
            if before != .idle || old.map({ $0.sighting.completed < $0.sighting.total }) ?? true {
                log.add(
                    .upToDate,
                    sighting.title,
                    "up to date: \(sighting.sent) sent, \(sighting.received) received",
                    on: sighting.key,
                    at: now
                )
                past.note(line, at: now)
            }
        case .offline where before != .offline:
            log.add(
                .offline,
                sighting.title,
                sighting.error ?? "cannot be reached",
                on: sighting.key,
                at: now
            )
        case .connecting, .busy, .idle, .offline, .stopped: break
        }
        lines[sighting.key] = line
    }

    /// The keys of the connections.
    package var keys: [String] { lines.keys.sorted() }

    /// Notes what is pending over a connection; nil if that is not known.
    package mutating func notePending(_ pending: Pending?, on key: String, at now: Int64) {
        lines[key]?.pending = pending
        lines[key]?.noteBehind(at: now)
    }

    /// The failures of a connection's documents; nil if there is no such connection.
    func failures(on key: String) -> FailedDocuments? { lines[key]?.failures }

    /// Adds a document that could not be replicated.
    ///
    /// `collection`: its full name; empty if it is not known.
    package mutating func failed(
        _ document: String,
        in collection: String,
        on key: String,
        isPush: Bool,
        isRefusal: Bool,
        _ message: String,
        at now: Int64
    ) {
        // The connection has ended, or was one too many to be listed.
        guard let title = lines[key]?.sighting.title else { return }
        let why = isPush || isRefusal ? PeerEvent.Reason.refused : .notPulled
        let failure = FailedDocuments.Failure(
            collection: collection,
            id: document,
            isPush: isPush,
            why: why,
            message: message,
            time: now
        )
        // A peer may try again what is refused.
        guard lines[key]?.failures.insert(failure) == true else { return }
        log.add(.failed, title, message, document: document, why: why, on: key, at: now)
    }

    /// Removes connections whose keys begin with a text and are not among those that are there.
    package mutating func keep(_ keys: Set<String>, among prefix: String, at now: Int64) {
        for (key, line) in lines where key.hasPrefix(prefix) && !keys.contains(key) {
            var sighting = line.sighting
            sighting.activity = .stopped
            update(sighting, at: now)
        }
    }

    /// Ends a second: counts what was transferred in it.
    package mutating func endSecond(at now: Int64) {
        var sum = RateHistory.Sample()
        for key in lines.keys.sorted() {
            guard var line = lines[key] else { continue }
            count(&line, into: &sum)
            if line.rate.sent + line.rate.received > 0 {
                log.add(
                    .transferred,
                    line.sighting.title,
                    "\(line.rate.sent) sent, \(line.rate.received) received",
                    on: key,
                    at: now
                )
            }
            lines[key] = line
        }
        rates.add(sum)
    }

    private func count(_ line: inout Line, into sum: inout RateHistory.Sample) {
        let (counted, sighting) = (line.counted, line.sighting)
        // A connection that was made again begins at 0.
        func growth(_ now: UInt64, _ before: UInt64) -> UInt64 { now >= before ? now - before : now }
        line.rate = RateHistory.Sample(
            sent: growth(sighting.sent, counted.sent),
            received: growth(sighting.received, counted.received),
            bytes: growth(sighting.completed, counted.bytes)
        )
        line.counted = RateHistory.Sample(
            sent: sighting.sent,
            received: sighting.received,
            bytes: sighting.completed
        )
        sum.sent += line.rate.sent
        sum.received += line.rate.received
        sum.bytes += line.rate.bytes
    }
}
