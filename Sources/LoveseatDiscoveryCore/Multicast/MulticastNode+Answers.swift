extension MulticastNode {
    /// Under this name hosts list the types that they have services of (RFC 6763, 9).
    static let allServices = DomainName("_services._dns-sd._udp.local")
    private static let maximumDeferred = 32
    private static let maximumKnownAnswers = 2_048

    mutating func receive(query message: DNSMessage, _ datagram: IncomingDatagram, at now: Int64) {
        let link = datagram.link
        if !message.authorities.isEmpty { compare(probe: message, on: link, at: now) }
        if let index = deferred.firstIndex(where: { $0.source == datagram.source && $0.link == link }),
            message.questions.isEmpty
        {
            let room = Self.maximumKnownAnswers - deferred[index].known.count
            deferred[index].known += message.answers.prefix(max(0, room))
            return
        }
        noteQuestions(message, on: link, at: now)
        guard datagram.port == Self.port else { return answer(legacy: message, datagram) }
        if message.isTruncated, deferred.count < Self.maximumDeferred {
            deferred.append(
                DeferredQuery(
                    source: datagram.source,
                    link: link,
                    questions: message.questions,
                    known: message.answers,
                    due: now + delay(400...500)
                )
            )
            return
        }
        answer(
            message.questions,
            known: message.answers,
            probe: message.authorities,
            from: datagram.source,
            on: link,
            at: now
        )
    }

    mutating func answerDeferred(at now: Int64) {
        for query in deferred where query.due <= now {
            answer(
                query.questions,
                known: query.known,
                probe: [],
                from: query.source,
                on: query.link,
                at: now
            )
        }
        deferred.removeAll { $0.due <= now }
    }

    private mutating func answer(
        _ questions: [DNSQuestion],
        known: [DNSRecord],
        probe: [DNSRecord],
        from source: [UInt8],
        on link: Link,
        at now: Int64
    ) {
        let own = ownRecords(on: link)
        if own.isEmpty { return }
        let knownTTLs = Dictionary(known.map { ($0.key, $0.ttl) }) { max($0, $1) }
        let ownKeys = Set(own.map(\.key))
        // Our own probe, which came back, or one of another socket of this host that says the same.
        let isOwnProbe = !probe.isEmpty && probe.allSatisfy { ownKeys.contains($0.key) }
        if isOwnProbe { return }
        var (unicast, immediate): ([DNSRecord], [DNSRecord]) = ([], [])
        for question in questions {
            for record in own.filter(question.matches) + absence(of: question, among: own) {
                if let ttl = knownTTLs[record.key], ttl >= record.ttl / 2 { continue }
                let sent = lastMulticast[link]?[record.key]
                if question.wantsUnicast, probe.isEmpty, let sent, now - sent < Int64(record.ttl) * 250 {
                    unicast.append(record)
                } else if !probe.isEmpty {
                    immediate.append(record)
                } else {
                    let wait = record.isUnique ? 0 : delay(20...120)
                    // A record is sent to the group at most once a second.
                    let due = max(now + wait, (sent ?? now - 1_000) + 1_000)
                    if let other = pending[link]?[record.key], other.due <= due { continue }
                    pending[link, default: [:]][record.key] = PendingAnswer(record: record, due: due)
                }
            }
        }
        if !immediate.isEmpty { multicast(response(immediate, own: own), on: link, at: now) }
        if !unicast.isEmpty {
            for bytes in response(unicast, own: own).encoded(limit: Self.maximumDatagram) {
                effects.append(.unicast(bytes, address: source, port: Self.port, link))
            }
        }
        sendPending(at: now)
    }

    /// Says which types a name has, if it has not the one that is asked for (RFC 6762, 6.1).
    private func absence(of question: DNSQuestion, among own: [DNSRecord]) -> [DNSRecord] {
        let unique = own.filter { $0.isUnique && $0.name == question.name }
        guard let first = unique.first, question.type != DNSType.any,
            !unique.contains(where: { $0.data.type == question.type })
        else { return [] }
        let types = Set(unique.map(\.data.type)).sorted()
        return [DNSRecord(first.name, .nsec(types), ttl: Self.hostTTL, isUnique: true)]
    }

    /// A response with the records that are asked for next.
    private func response(_ answers: [DNSRecord], own: [DNSRecord]) -> DNSMessage {
        var message = DNSMessage()
        message.isResponse = true
        var seen: Set<DNSRecord.Key> = []
        message.answers = answers.filter { seen.insert($0.key).inserted }
        var names: [DomainName] = []
        for record in message.answers {
            if case .ptr(let name) = record.data { names.append(name) }
            if case .srv(_, _, _, let target) = record.data { names.append(target) }
        }
        let services = own.filter { record in
            record.isUnique && names.contains(record.name) && seen.insert(record.key).inserted
        }
        let hosts =
            services.contains { $0.data.type == DNSType.srv }
            ? own.filter { $0.name == hostName && seen.insert($0.key).inserted } : []
        message.additionals = services + hosts
        return message
    }

    /// Answers a resolver that knows nothing of multicasts (RFC 6762, 6.7).
    private mutating func answer(legacy message: DNSMessage, _ datagram: IncomingDatagram) {
        let own = ownRecords(on: datagram.link)
        let answers = own.filter { record in message.questions.contains { $0.matches(record) } }
        if answers.isEmpty { return }
        var reply = response(answers, own: own)
        func shortened(_ records: [DNSRecord]) -> [DNSRecord] {
            records.map { DNSRecord($0.name, $0.data, ttl: min($0.ttl, 10), isUnique: false) }
        }
        reply.id = message.id
        // Only questions for our own names are repeated, which leaves room for the answers.
        let answered = message.questions.filter { question in own.contains { question.matches($0) } }
        reply.questions = answered.prefix(8).map { DNSQuestion($0.name, $0.type) }
        (reply.answers, reply.additionals) = (shortened(reply.answers), shortened(reply.additionals))
        effects.append(
            .unicast(
                reply.encodedAlone(limit: Self.maximumDatagram),
                address: datagram.source,
                port: datagram.port,
                datagram.link
            )
        )
    }

    /// Sends the answers that are due, with others that wait for the same link.
    mutating func sendPending(at now: Int64) {
        for link in pending.keys.sorted(by: {
            ($0.interface, $0.isIPv6 ? 1 : 0) < ($1.interface, $1.isIPv6 ? 1 : 0)
        }) {
            guard let waiting = pending[link], waiting.values.contains(where: { $0.due <= now }) else {
                continue
            }
            let due = waiting.values.filter { $0.due <= now }.map(\.record)
            let own = ownRecords(on: link)
            let order = Dictionary(own.enumerated().map { ($1.key, $0) }) { first, _ in first }
            let sorted = due.sorted { (order[$0.key] ?? .max) < (order[$1.key] ?? .max) }
            multicast(response(sorted, own: own), on: link, at: now)
        }
        pending = pending.filter { !$0.value.isEmpty }
    }
}

/// An answer that waits for others of its link.
struct PendingAnswer {
    let record: DNSRecord
    var due: Int64
}

/// A query whose known answers continue in other datagrams.
struct DeferredQuery {
    let source: [UInt8]
    let link: Link
    var questions: [DNSQuestion]
    var known: [DNSRecord]
    let due: Int64
}
