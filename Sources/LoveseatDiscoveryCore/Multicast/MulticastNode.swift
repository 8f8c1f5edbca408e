/// Multicast DNS and service discovery of one host (RFC 6762, RFC 6763): it publishes services, and finds those of others.
///
/// It is a value without sockets and clock. Datagrams and the time, in milliseconds of a clock that never jumps, go in; datagrams to send
/// and events come out of ``drainEffects()``. Call ``advance(to:)`` at ``deadline``.
package struct MulticastNode {
    package static let port: UInt16 = 5_353
    /// The longest datagram that is sent, in bytes.
    static let maximumDatagram = 1_440

    /// An action for the caller to perform.
    package enum Effect: Hashable, Sendable {
        /// Send to the group of a link.
        case multicast([UInt8], Link)
        /// Send to one host.
        case unicast([UInt8], address: [UInt8], port: UInt16, Link)
        case event(Event)
    }

    /// An event of a registration, a browse or a resolution.
    package enum Event: Hashable, Sendable {
        /// The service is published under this name.
        case published(Int, instance: String)
        /// A service is on a link.
        case appeared(Int, ServiceName, Link)
        /// A service is no longer on a link.
        case disappeared(Int, ServiceName, Link)
        /// The TXT record of a service.
        case text(Int, ServiceName, [UInt8])
        /// Where a service is reached; the resolution goes on until it is ended.
        case resolved(Int, [Location])
    }

    /// Where a service is reached on a link.
    package struct Location: Hashable, Sendable {
        package let link: Link
        /// Without a dot at its end.
        package let host: String
        package let port: UInt16
        /// 4 or 16 bytes each.
        package let addresses: [[UInt8]]
        package let text: [UInt8]

        package init(link: Link, host: String, port: UInt16, addresses: [[UInt8]], text: [UInt8]) {
            self.link = link
            self.host = host
            self.port = port
            self.addresses = addresses
            self.text = text
        }
    }

    /// A service to publish.
    package struct Service: Sendable {
        package var instance: String
        package var type: ServiceType
        package var subtypes: [String]
        package var port: UInt16
        package var text: [UInt8]
        /// The index of the only interface to publish it on; nil for all.
        package var interface: UInt32?

        package init(
            instance: String,
            type: ServiceType,
            subtypes: [String] = [],
            port: UInt16,
            text: [UInt8],
            interface: UInt32? = nil
        ) {
            self.instance = instance
            self.type = type
            self.subtypes = subtypes
            self.port = port
            self.text = text
            self.interface = interface
        }
    }

    let random: @Sendable () -> UInt64
    var interfaces: [UInt32: LinkInterface] = [:]
    var hostName: DomainName
    var registrations: [Int: ServiceRegistration] = [:]
    var browses: [Int: ServiceBrowse] = [:]
    var resolutions: [Int: ServiceResolution] = [:]
    var caches: [Link: RecordCache] = [:]
    var pending: [Link: [DNSRecord.Key: PendingAnswer]] = [:]
    var lastMulticast: [Link: [DNSRecord.Key: Int64]] = [:]
    var deferred: [DeferredQuery] = []
    var questions: [PendingQuestion] = []
    var effects: [Effect] = []
    var nextID = 1

    /// - Parameters:
    ///   - hostLabel: The first label of the private host name; it has to be unlikely that another host has the same.
    ///   - random: Random numbers, for delays and other host names.
    package init(hostLabel: String, random: @escaping @Sendable () -> UInt64) {
        self.random = random
        hostName = Self.hostName(hostLabel)
    }

    static func hostName(_ label: String) -> DomainName {
        DomainName(labels: [Array(label.utf8), Array("local".utf8)]) ?? DomainName(root: ())
    }

    /// The name of this host in the records of its services, without a dot at its end.
    package var host: String { hostName.description }

    /// Takes what is to be done.
    package mutating func drainEffects() -> [Effect] {
        defer { effects = [] }
        return effects
    }

    /// The number that the next registration, browse or resolution gets.
    package var nextNumber: Int { nextID }

    /// A random number of milliseconds in a range.
    func delay(_ range: ClosedRange<Int64>) -> Int64 {
        range.lowerBound + Int64(random() % UInt64(range.upperBound - range.lowerBound + 1))
    }

    /// Sets the interfaces that are up, after a change.
    package mutating func setInterfaces(_ list: [LinkInterface], at now: Int64) {
        let before = interfaces
        interfaces = Dictionary(list.map { ($0.index, $0) }) { first, _ in first }
        if interfaces == before { return }
        let (old, new) = (
            Set(before.values.flatMap(\.links)), Set(interfaces.values.flatMap(\.links))
        )
        for link in old.subtracting(new) {
            caches[link] = nil
            pending[link] = nil
            lastMulticast[link] = nil
            questions.removeAll { $0.link == link }
            for id in browses.keys.sorted() { lose(link, browse: id) }
        }
        for link in new.subtracting(old) {
            for id in browses.keys.sorted() {
                let time = now + delay(20...120)
                browses[id]?.schedules[link] = ServiceBrowse.Schedule(at: time)
            }
            for id in resolutions.keys { resolutions[id]?.due = now }
        }
        // Another host may have taken the names meanwhile (RFC 6762, 8.1).
        if !new.isSubset(of: old) || addressesGrew(from: before) {
            probeAgain(at: now)
        }
    }

    private func addressesGrew(from before: [UInt32: LinkInterface]) -> Bool {
        interfaces.values.contains { interface in
            !Set(interface.addresses).isSubset(of: Set(before[interface.index]?.addresses ?? []))
        }
    }

    var links: [Link] {
        interfaces.values.flatMap(\.links).sorted {
            ($0.interface, $0.isIPv6 ? 1 : 0) < ($1.interface, $1.isIPv6 ? 1 : 0)
        }
    }

    /// Takes a datagram. One from outside of the link, and one that is not a valid message, is ignored.
    package mutating func receive(_ datagram: IncomingDatagram, at now: Int64) {
        // Anybody can send anything to this port.
        guard let interface = interfaces[datagram.link.interface], interface.isOnLink(datagram.source),
            let message = try? DNSMessage(datagram.bytes)
        else { return }
        if message.isResponse {
            // A response from another port is not one of multicast DNS (RFC 6762, 6).
            if datagram.port != Self.port { return }
            receive(response: message, on: datagram.link, at: now)
        } else {
            receive(query: message, datagram, at: now)
        }
    }

    /// The time of the next call of ``advance(to:)``; nil if none is needed.
    package var deadline: Int64? {
        var times: [Int64] = []
        times += registrations.values.compactMap(\.due)
        times += pending.values.flatMap { $0.values.map(\.due) }
        times += deferred.map(\.due) + questions.map(\.due)
        times += browses.values.flatMap { $0.schedules.values.map(\.at) }
        times += resolutions.values.map(\.due)
        times += caches.values.map(\.nextDeadline)
        return times.min().flatMap { $0 == .max ? nil : $0 }
    }

    /// Does what is due.
    package mutating func advance(to now: Int64) {
        advanceRegistrations(to: now)
        answerDeferred(at: now)
        expire(at: now)
        ask(at: now)
        sendPending(at: now)
    }

    mutating func send(_ message: DNSMessage, to link: Link) {
        for bytes in message.encoded(limit: Self.maximumDatagram) { effects.append(.multicast(bytes, link)) }
    }
}
