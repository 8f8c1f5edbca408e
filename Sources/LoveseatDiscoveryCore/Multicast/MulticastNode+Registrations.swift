import LoveseatAssertions

extension MulticastNode {
    static let hostTTL: UInt32 = 120
    static let serviceTTL: UInt32 = 4_500
    /// After this many conflicts, probes wait for five seconds (RFC 6762, 8.1).
    private static let maximumConflicts = 15

    /// Publishes a service. ``Event/published(_:instance:)`` follows, with another name if the name is in use.
    package mutating func publish(_ service: Service, at now: Int64) -> Int {
        defer { nextID += 1 }
        var registration = ServiceRegistration(service: service, instance: service.instance)
        registration.probe(at: now + delay(0...250))
        registrations[nextID] = registration
        return nextID
    }

    /// Changes the TXT record of a service, at most once a second.
    package mutating func update(_ id: Int, text: [UInt8], at now: Int64) {
        // The service may be withdrawn already, or have this text.
        guard var registration = registrations[id], registration.service.text != text else { return }
        registration.previousText = registration.service.text
        registration.service.text = text
        if registration.isOwner {
            registration.stage = .announcing(sent: 0)
            registration.due = max(now, (registration.lastAnnouncement ?? now - 1_000) + 1_000)
        }
        registrations[id] = registration
    }

    /// Withdraws a service: tells others that it is gone.
    package mutating func withdraw(_ id: Int) {
        // Others do not know of a service that was not announced yet.
        guard let registration = registrations.removeValue(forKey: id), registration.isOwner else { return }
        sayGoodbye(for: registration, withHost: !registrations.values.contains(where: \.isOwner))
    }

    private mutating func sayGoodbye(for registration: ServiceRegistration, withHost: Bool) {
        for link in links(of: registration) {
            var message = DNSMessage()
            message.isResponse = true
            let records =
                registration.sharedRecords + registration.uniqueRecords(of: hostName)
                + (withHost ? hostRecords(on: link) : [])
            let kept = Set(ownRecords(on: link).map(\.key))
            message.answers = records.filter { !kept.contains($0.key) }.map { record in
                var record = record
                record.ttl = 0
                return record
            }
            for record in message.answers {
                pending[link]?[record.key] = nil
                lastMulticast[link]?[record.key] = nil
            }
            send(message, to: link)
        }
    }

    /// Asks again whether other hosts have the names.
    mutating func probeAgain(at now: Int64) {
        for id in registrations.keys.sorted() {
            let time = now + delay(0...250)
            registrations[id]?.probe(at: time)
        }
    }

    func links(of registration: ServiceRegistration) -> [Link] {
        links.filter { $0.interface == registration.service.interface ?? $0.interface }
    }

    // MARK: Records

    func hostRecords(on link: Link) -> [DNSRecord] {
        (interfaces[link.interface]?.addresses ?? []).map { address in
            DNSRecord(
                hostName,
                address.isIPv6 ? .aaaa(address.bytes) : .a(address.bytes),
                ttl: Self.hostTTL,
                isUnique: true
            )
        }
    }

    /// The records of all published services on a link.
    func ownRecords(on link: Link) -> [DNSRecord] {
        let owned = registrations.keys.sorted().compactMap { registrations[$0] }.filter { registration in
            registration.isOwner && (registration.service.interface ?? link.interface) == link.interface
        }
        guard !owned.isEmpty else { return [] }
        var seen: Set<DNSRecord.Key> = []
        return (owned.flatMap { $0.sharedRecords + $0.uniqueRecords(of: hostName) } + hostRecords(on: link))
            .filter { seen.insert($0.key).inserted }
    }

    // MARK: Probing and announcing

    mutating func advanceRegistrations(to now: Int64) {
        for id in registrations.keys.sorted() {
            while let registration = registrations[id], let due = registration.due, due <= now {
                advance(id, registration, to: now)
            }
        }
    }

    private mutating func advance(_ id: Int, _ registration: ServiceRegistration, to now: Int64) {
        var registration = registration
        switch registration.stage {
        case .probing(let sent) where sent < 3:
            for link in links(of: registration) { sendProbe(registration, on: link) }
            registration.stage = .probing(sent: sent + 1)
            registration.due = now + 250
        case .probing:
            let isNew = !registration.isOwner
            registration.isOwner = true
            registration.stage = .announcing(sent: 0)
            registration.due = now
            if isNew { effects.append(.event(.published(id, instance: registration.instance))) }
        case .announcing(let sent):
            for link in links(of: registration) { announce(registration, on: link, at: now) }
            registration.lastAnnouncement = now
            registration.stage = sent == 0 ? .announcing(sent: 1) : .established
            registration.due = sent == 0 ? now + 1_000 : nil
            if sent > 0 { registration.conflicts = 0 }
        case .established: registration.due = nil
        }
        registrations[id] = registration
    }

    private func sendProbeQuestions(_ registration: ServiceRegistration, on link: Link) -> DNSMessage {
        var message = DNSMessage()
        message.authorities = registration.uniqueRecords(of: hostName) + hostRecords(on: link)
        for index in message.authorities.indices { message.authorities[index].isUnique = false }
        if let name = registration.name.domainName {
            message.questions.append(DNSQuestion(name, DNSType.any, wantsUnicast: true))
        }
        message.questions.append(DNSQuestion(hostName, DNSType.any, wantsUnicast: true))
        return message
    }

    private mutating func sendProbe(_ registration: ServiceRegistration, on link: Link) {
        send(sendProbeQuestions(registration, on: link), to: link)
    }

    private mutating func announce(_ registration: ServiceRegistration, on link: Link, at now: Int64) {
        var message = DNSMessage()
        message.isResponse = true
        message.answers =
            registration.sharedRecords + registration.uniqueRecords(of: hostName) + hostRecords(on: link)
        multicast(message, on: link, at: now)
    }

    /// Sends an answer to the group, and remembers which records it had.
    mutating func multicast(_ message: DNSMessage, on link: Link, at now: Int64) {
        for record in message.answers + message.additionals {
            lastMulticast[link, default: [:]][record.key] = now
            pending[link]?[record.key] = nil
        }
        send(message, to: link)
    }

    // MARK: Conflicts

    /// The authority records of another host's probe: of simultaneous probes, the later data wins (RFC 6762, 8.2).
    mutating func compare(probe message: DNSMessage, on link: Link, at now: Int64) {
        for id in registrations.keys.sorted() {
            guard var registration = registrations[id], case .probing(let sent) = registration.stage,
                sent > 0,
                !registration.isOwner, let name = registration.name.domainName
            else { continue }
            let theirs = message.authorities.filter { $0.name == name }
            guard !theirs.isEmpty else { continue }
            let ours = registration.uniqueRecords(of: hostName)
            guard Self.order(ours).lexicographicallyPrecedes(Self.order(theirs), by: Self.precedes) else {
                continue
            }
            registration.probe(at: now + 1_000)
            registrations[id] = registration
        }
    }

    private static func order(_ records: [DNSRecord]) -> [[UInt8]] {
        records.map { [UInt8($0.data.type >> 8), UInt8($0.data.type & 0xFF)] + $0.data.comparable }
            .sorted(by: precedes)
    }

    private static func precedes(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        left.lexicographicallyPrecedes(right)
    }

    /// Handles the records of a response that contradict our own names.
    mutating func noteConflicts(in records: [DNSRecord], at now: Int64) {
        for id in registrations.keys.sorted() {
            guard let registration = registrations[id], let name = registration.name.domainName else {
                continue
            }
            var ours = Set(registration.uniqueRecords(of: hostName).map(\.data))
            // Our own announcement may come back after a change.
            if let text = registration.previousText { ours.insert(.txt(text)) }
            let types = Set(ours.map(\.type))
            let isContradicted = records.contains {
                $0.name == name && $0.ttl > 0 && types.contains($0.data.type) && !ours.contains($0.data)
            }
            if isContradicted { conflict(id, at: now) }
        }
        if registrations.isEmpty { return }
        let addresses = Set(interfaces.values.flatMap(\.addresses).map(\.bytes))
        let isHostTaken = records.contains { record in
            guard record.name == hostName, record.ttl > 0 else { return false }
            switch record.data {
            case .a(let bytes), .aaaa(let bytes): return !addresses.contains(bytes)
            case .ptr, .srv, .txt, .nsec, .other: return false
            }
        }
        // Addresses that were just removed from an interface are not a conflict.
        guard isHostTaken, registrations.values.contains(where: { !$0.isOwner }) else { return }
        hostName = Self.hostName("lv-" + String(random() & 0xFFFF_FFFF, radix: 16))
        probeAgain(at: now)
    }

    private mutating func conflict(_ id: Int, at now: Int64) {
        guard var registration = registrations[id] else { return impossible("no registration \(id)") }
        registration.conflicts += 1
        let wait = registration.conflicts > Self.maximumConflicts ? 5_000 : delay(0...250)
        if registration.isOwner {
            // Probe again: of two hosts that both had the name, the probes decide (RFC 6762, 9).
            registration.isOwner = false
            registrations[id]?.isOwner = false
            forgetAnswers(of: registration)
        } else {
            registration.instance = InstanceName.alternative(to: registration.instance)
        }
        registration.probe(at: now + wait)
        registrations[id] = registration
    }

    /// Answers that wait must not be sent for a name that may belong to another host.
    private mutating func forgetAnswers(of registration: ServiceRegistration) {
        for link in links(of: registration) {
            let kept = Set(ownRecords(on: link).map(\.key))
            for record in registration.sharedRecords + registration.uniqueRecords(of: hostName)
            where !kept.contains(record.key) {
                pending[link]?[record.key] = nil
                lastMulticast[link]?[record.key] = nil
            }
        }
    }
}

/// A service that is published, or on the way to it.
struct ServiceRegistration {
    enum Stage: Hashable {
        /// Asking whether another host has the name.
        case probing(sent: Int)
        case announcing(sent: Int)
        case established
    }

    var service: MulticastNode.Service
    /// The name that is tried, or was published.
    var instance: String
    var stage = Stage.probing(sent: 0)
    /// When the stage goes on.
    var due: Int64?
    /// Whether the name was published, so that questions about it are answered.
    var isOwner = false
    var conflicts = 0
    var lastAnnouncement: Int64?
    var previousText: [UInt8]?

    mutating func probe(at time: Int64) {
        stage = .probing(sent: 0)
        due = time
    }

    var name: ServiceName { ServiceName(instance: instance, type: service.type) }

    /// The records that several hosts may have.
    var sharedRecords: [DNSRecord] {
        guard let type = service.type.domainName, let name = name.domainName else { return [] }
        var records = [DNSRecord(type, .ptr(name), ttl: MulticastNode.serviceTTL, isUnique: false)]
        for subtype in service.subtypes {
            guard let subtypeName = type.subtype(subtype) else { continue }
            records.append(DNSRecord(subtypeName, .ptr(name), ttl: MulticastNode.serviceTTL, isUnique: false))
        }
        if let all = MulticastNode.allServices {
            records.append(DNSRecord(all, .ptr(type), ttl: MulticastNode.serviceTTL, isUnique: false))
        }
        return records
    }

    /// The records that this host alone has.
    func uniqueRecords(of host: DomainName) -> [DNSRecord] {
        guard let name = name.domainName else { return [] }
        let data = DNSData.srv(priority: 0, weight: 0, port: service.port, target: host)
        return [
            DNSRecord(name, data, ttl: MulticastNode.hostTTL, isUnique: true),
            DNSRecord(name, .txt(service.text), ttl: MulticastNode.serviceTTL, isUnique: true),
        ]
    }
}

extension DomainName {
    /// The name of a type's subtype.
    func subtype(_ label: String) -> DomainName? {
        prepending(Array("_sub".utf8))?.prepending(Array((label.hasPrefix("_") ? label : "_" + label).utf8))
    }
}
