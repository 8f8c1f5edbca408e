extension MulticastNode {
    private static let maximumInterval: Int64 = 3_600_000
    /// How long a peer has to answer that it is still there.
    private static let reconfirmation: Int64 = 3_000
    private static let maximumQuestions = 1_024

    /// Searches for services of a type, or of one of its subtypes. Services that are known already are reported at once.
    package mutating func browse(_ type: ServiceType, subtype: String? = nil, at now: Int64) -> Int? {
        guard let typeName = type.domainName,
            let name = subtype.map({ typeName.subtype($0) }) ?? typeName
        else { return nil }
        defer { nextID += 1 }
        var browse = ServiceBrowse(name: name, type: type)
        for link in links { browse.schedules[link] = ServiceBrowse.Schedule(at: now + delay(20...120)) }
        browses[nextID] = browse
        for (link, cache) in caches {
            find(in: cache[name, DNSType.ptr].map(\.data), link, browse: nextID, at: now)
        }
        return nextID
    }

    /// Ends a browse.
    package mutating func endBrowse(_ id: Int) {
        browses[id] = nil
        forgetUnwanted()
    }

    /// Searches for the host, port and addresses of a service.
    package mutating func resolve(_ service: ServiceName, at now: Int64) -> Int? {
        guard let name = service.domainName else { return nil }
        defer { nextID += 1 }
        resolutions[nextID] = ServiceResolution(service: service, name: name, due: now)
        checkResolutions()
        return nextID
    }

    /// Ends a resolution.
    package mutating func endResolution(_ id: Int) {
        resolutions[id] = nil
        forgetUnwanted()
    }

    /// Asks whether a service that could not be reached is still there. If it does not answer, it disappears after three seconds.
    package mutating func reconfirm(_ service: ServiceName, at now: Int64) {
        // An app may ask for a name that is empty or longer than 63 bytes.
        guard let target = service.domainName else { return }
        for id in browses.keys.sorted() {
            guard let browse = browses[id] else { continue }
            for link in links where browse.seen[link]?.contains(service) == true {
                caches[link]?.shorten(browse.name, DNSType.ptr, to: now + Self.reconfirmation) {
                    $0 == .ptr(target)
                }
                // Known answers leave out what is about to expire.
                for wait: Int64 in [0, 1_000] {
                    add(DNSQuestion(browse.name, DNSType.ptr), on: link, at: now + wait)
                }
            }
        }
    }

    private mutating func add(_ question: DNSQuestion, on link: Link, at due: Int64) {
        // The question waits already, or too many do: a peer may announce any number of services.
        guard questions.count < Self.maximumQuestions,
            !questions.contains(where: { $0.link == link && $0.question == question && $0.due == due })
        else { return }
        questions.append(PendingQuestion(link: link, question: question, due: due))
    }

    // MARK: Responses

    mutating func receive(response message: DNSMessage, on link: Link, at now: Int64) {
        let records = message.answers + message.additionals
        noteConflicts(in: records, at: now)
        for record in records where record.ttl > 0 {
            // Somebody has just sent the same answer.
            if let waiting = pending[link]?[record.key], record.ttl >= waiting.record.ttl / 2 {
                pending[link]?[record.key] = nil
            }
        }
        let wanted = records.filter { isWanted(RecordCache.Key(name: $0.name, type: $0.data.type)) }
        if wanted.isEmpty { return }
        var cache = caches[link] ?? RecordCache()
        var sent: [RecordCache.Key: Set<DNSData>] = [:]
        for record in wanted {
            _ = cache.receive(record, at: now)
            if record.isUnique {
                sent[RecordCache.Key(name: record.name, type: record.data.type), default: []]
                    .insert(record.data)
            }
        }
        for (key, data) in sent { cache.flush(key.name, key.type, keeping: data, at: now) }
        caches[link] = cache
        for id in browses.keys.sorted() {
            guard let name = browses[id]?.name else { continue }
            let found = wanted.filter { $0.name == name && $0.ttl > 0 }.map(\.data)
            find(in: found, link, browse: id, at: now)
            for record in wanted where record.data.type == DNSType.txt && record.ttl > 0 {
                noteText(record, link, browse: id)
            }
        }
        checkResolutions()
    }

    /// Whether somebody asks for records of this kind.
    private func isWanted(_ key: RecordCache.Key) -> Bool {
        switch key.type {
        case DNSType.ptr: browses.values.contains { $0.name == key.name }
        case DNSType.srv, DNSType.txt:
            browses.values.contains { $0.type.domainName == key.name.dropFirst() }
                || resolutions.values.contains { $0.name == key.name }
        case DNSType.a, DNSType.aaaa: !browses.isEmpty || !resolutions.isEmpty
        default: false
        }
    }

    private mutating func forgetUnwanted() {
        for link in Array(caches.keys) {
            guard var cache = caches[link] else { continue }
            cache.keep(where: isWanted)
            caches[link] = cache.count == 0 ? nil : cache
        }
    }

    private mutating func find(in data: [DNSData], _ link: Link, browse id: Int, at now: Int64) {
        for case .ptr(let name) in data {
            guard let browse = browses[id], let service = ServiceName(name), service.type == browse.type,
                browse.seen[link]?.contains(service) != true
            else { continue }
            browses[id]?.seen[link, default: []].insert(service)
            effects.append(.event(.appeared(id, service, link)))
            if case .txt(let text)? = caches[link]?[name, DNSType.txt].last?.data {
                reportText(text, of: service, browse: id)
            } else {
                add(DNSQuestion(name, DNSType.txt), on: link, at: now + delay(20...120))
            }
        }
    }

    private mutating func noteText(_ record: DNSRecord, _ link: Link, browse id: Int) {
        // The text may be of a service that this browse has not found.
        guard case .txt(let text) = record.data, let service = ServiceName(record.name),
            browses[id]?.seen[link]?.contains(service) == true
        else { return }
        reportText(text, of: service, browse: id)
    }

    private mutating func reportText(_ text: [UInt8], of service: ServiceName, browse id: Int) {
        if browses[id]?.texts[service] == text { return }
        browses[id]?.texts[service] = text
        effects.append(.event(.text(id, service, text)))
    }

    /// Reports that nothing of a link is there any longer.
    mutating func lose(_ link: Link, browse id: Int) {
        browses[id]?.schedules[link] = nil
        for service in browses[id]?.seen.removeValue(forKey: link) ?? [] {
            effects.append(.event(.disappeared(id, service, link)))
            forgetText(of: service, browse: id)
        }
    }

    private mutating func forgetText(of service: ServiceName, browse id: Int) {
        // The service may be on other links still.
        guard let browse = browses[id], !browse.seen.values.contains(where: { $0.contains(service) }) else {
            return
        }
        browses[id]?.texts[service] = nil
    }

    mutating func expire(at now: Int64) {
        for link in Array(caches.keys) {
            guard var cache = caches[link], now >= cache.nextDeadline else { continue }
            let (expired, asked) = cache.advance(to: now) { key in
                // Hosts' records live for two minutes: asking for those again and again would be traffic for nothing.
                key.type == DNSType.ptr || key.type == DNSType.txt
            }
            caches[link] = cache.count == 0 ? nil : cache
            for key in asked { add(DNSQuestion(key.name, key.type), on: link, at: now) }
            for record in expired {
                guard case .ptr(let name) = record.data, let service = ServiceName(name) else { continue }
                for id in browses.keys.sorted() where browses[id]?.name == record.name {
                    guard browses[id]?.seen[link]?.remove(service) != nil else { continue }
                    effects.append(.event(.disappeared(id, service, link)))
                    forgetText(of: service, browse: id)
                }
            }
        }
    }

    // MARK: Questions

    /// Questions that another host has just asked need not be asked again, if it knows no more answers than we do.
    mutating func noteQuestions(_ message: DNSMessage, on link: Link, at now: Int64) {
        for question in message.questions where !question.wantsUnicast {
            for id in Array(browses.keys) {
                guard let browse = browses[id], browse.name == question.name, question.type == DNSType.ptr,
                    var schedule = browse.schedules[link], schedule.at - now < 1_000
                else { continue }
                let ours = Set(knownAnswers(to: question, on: link, at: now).map(\.key))
                guard message.answers.allSatisfy({ $0.name != question.name || ours.contains($0.key) }) else {
                    continue
                }
                schedule.at = now + schedule.interval
                schedule.interval = min(schedule.interval * 3, Self.maximumInterval)
                browses[id]?.schedules[link] = schedule
            }
        }
    }

    private func knownAnswers(to question: DNSQuestion, on link: Link, at now: Int64) -> [DNSRecord] {
        (caches[link]?[question.name, question.type] ?? []).compactMap { entry in
            let remaining = entry.remaining(at: now)
            guard remaining * 2 > entry.lifetime else { return nil }
            return DNSRecord(question.name, entry.data, ttl: UInt32(remaining / 1_000), isUnique: false)
        }
    }

    mutating func ask(at now: Int64) {
        var asked: [Link: [DNSQuestion]] = [:]
        for id in browses.keys.sorted() {
            guard let browse = browses[id] else { continue }
            for (link, schedule) in browse.schedules where schedule.at <= now {
                asked[link, default: []].append(DNSQuestion(browse.name, DNSType.ptr))
                browses[id]?.schedules[link] = ServiceBrowse.Schedule(
                    at: now + schedule.interval,
                    interval: min(schedule.interval * 3, Self.maximumInterval)
                )
            }
        }
        for id in resolutions.keys.sorted() {
            guard let resolution = resolutions[id], resolution.due <= now else { continue }
            for link in links {
                asked[link, default: []] += (caches[link] ?? RecordCache()).missing(resolution.name)
            }
            resolutions[id]?.due = now + resolution.interval
            resolutions[id]?.interval = min(resolution.interval * 3, Self.maximumInterval)
        }
        for waiting in questions where waiting.due <= now {
            // The answer may have come meanwhile.
            if waiting.question.type == DNSType.txt,
                caches[waiting.link]?[waiting.question.name, DNSType.txt].contains(where: {
                    $0.remaining(at: now) * 4 > $0.lifetime
                }) == true
            {
                continue
            }
            asked[waiting.link, default: []].append(waiting.question)
        }
        questions.removeAll { $0.due <= now }
        for (link, list) in asked.sorted(by: { $0.key.interface < $1.key.interface }) {
            var seen: Set<DNSQuestion> = []
            let unique = list.filter { seen.insert($0).inserted }
            // A datagram has room for this many names of any length.
            for start in stride(from: 0, to: unique.count, by: 4) {
                var message = DNSMessage()
                message.questions = Array(unique[start..<min(start + 4, unique.count)])
                message.answers = message.questions.flatMap { knownAnswers(to: $0, on: link, at: now) }
                send(message, to: link)
            }
        }
    }

    private mutating func checkResolutions() {
        for id in resolutions.keys.sorted() {
            guard let resolution = resolutions[id] else { continue }
            let found = links.compactMap { caches[$0]?.location(of: resolution.name, on: $0) }
            guard !found.isEmpty, found != resolution.found else { continue }
            resolutions[id]?.found = found
            effects.append(.event(.resolved(id, found)))
        }
    }
}

/// A search for the services of a type.
struct ServiceBrowse {
    struct Schedule {
        var at: Int64
        /// The wait after the next query; it triples up to an hour.
        var interval: Int64 = 1_000
    }

    let name: DomainName
    let type: ServiceType
    var schedules: [Link: Schedule] = [:]
    var seen: [Link: Set<ServiceName>] = [:]
    var texts: [ServiceName: [UInt8]] = [:]
}

/// A search for where a service is reached.
struct ServiceResolution {
    let service: ServiceName
    let name: DomainName
    var due: Int64
    var interval: Int64 = 250
    var found: [MulticastNode.Location] = []
}

/// A question that is asked once.
struct PendingQuestion {
    let link: Link
    let question: DNSQuestion
    var due: Int64
}

extension RecordCache {
    /// The questions that have to be asked to reach a service.
    func missing(_ name: DomainName) -> [DNSQuestion] {
        var questions: [DNSQuestion] = []
        if self[name, DNSType.txt].isEmpty { questions.append(DNSQuestion(name, DNSType.txt)) }
        guard case .srv(_, _, _, let target)? = self[name, DNSType.srv].last?.data else {
            return questions + [DNSQuestion(name, DNSType.srv)]
        }
        if self[target, DNSType.a].isEmpty, self[target, DNSType.aaaa].isEmpty {
            questions += [DNSQuestion(target, DNSType.a), DNSQuestion(target, DNSType.aaaa)]
        }
        return questions
    }

    /// Where a service is reached; nil until everything about it is known.
    func location(of name: DomainName, on link: Link) -> MulticastNode.Location? {
        guard case .srv(_, _, let port, let target)? = self[name, DNSType.srv].last?.data,
            case .txt(let text)? = self[name, DNSType.txt].last?.data
        else { return nil }
        let addresses = (self[target, DNSType.a] + self[target, DNSType.aaaa]).compactMap { entry in
            switch entry.data {
            case .a(let bytes), .aaaa(let bytes): bytes
            case .ptr, .srv, .txt, .nsec, .other: nil
            }
        }
        guard !addresses.isEmpty else { return nil }
        return MulticastNode.Location(
            link: link,
            host: target.description,
            port: port,
            addresses: addresses,
            text: text
        )
    }
}
