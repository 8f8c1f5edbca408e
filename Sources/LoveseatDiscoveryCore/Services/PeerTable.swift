/// A service or several services that are one peer: the same peer ID, or without one the same name.
package struct FoundPeer: Hashable, Sendable {
    /// The peer ID in lower case, with ` c` for a listener of CouchDB's wire; or the name and type of a service without one.
    package let key: String
    /// The `id` of the TXT record: 32 lower-case hexadecimal digits.
    package let peerID: String?
    /// All services of the peer. Several are possible while it is renamed, and if somebody pretends to be the peer.
    package var services: [ServiceName]
    package var text: ServiceText
    package var links: Set<Link>
}

/// Merges what is seen on each link into peers. Times are milliseconds.
package struct PeerTable {
    package static let maximumPeers = 512
    /// How long a peer that vanished may take to come back.
    ///
    /// With the second that a goodbye takes, a peer is gone two seconds after it said so.
    package static let patience: Int64 = 1_000
    /// How long a peer is not reported while its TXT record is missing.
    private static let textPatience: Int64 = 500
    private static let maximumServicesOfPeer = 8

    package enum Change: Hashable, Sendable {
        case found(FoundPeer)
        case changed(FoundPeer)
        case gone(FoundPeer)
        /// The table is full; said once.
        case overflow
    }

    private struct Sighting {
        var links: Set<Link> = []
        var text: [UInt8]?
        let first: Int64
        /// When the last link was lost.
        var lost: Int64?
    }

    private var sightings: [ServiceName: Sighting] = [:]
    private var reported: [String: FoundPeer] = [:]
    private var hasOverflowed = false

    package init() {}

    /// The peers that are there.
    package var peers: [FoundPeer] { reported.values.sorted { $0.key < $1.key } }

    package mutating func appeared(_ service: ServiceName, _ link: Link, at now: Int64) -> [Change] {
        if sightings[service] == nil, sightings.count >= Self.maximumPeers {
            defer { hasOverflowed = true }
            return hasOverflowed ? [] : [.overflow]
        }
        var sighting = sightings[service] ?? Sighting(first: now)
        sighting.links.insert(link)
        sighting.lost = nil
        sightings[service] = sighting
        return update(at: now)
    }

    package mutating func disappeared(_ service: ServiceName, _ link: Link, at now: Int64) -> [Change] {
        guard var sighting = sightings[service], sighting.links.remove(link) != nil else { return [] }
        if sighting.links.isEmpty { sighting.lost = now }
        sightings[service] = sighting
        return update(at: now)
    }

    package mutating func text(_ text: [UInt8], of service: ServiceName, at now: Int64) -> [Change] {
        guard sightings[service] != nil, sightings[service]?.text != text else { return [] }
        sightings[service]?.text = text
        return update(at: now)
    }

    /// The time of the next call of ``advance(to:)``.
    package var deadline: Int64? {
        sightings.values.compactMap { sighting in
            if let lost = sighting.lost { return lost + Self.patience }
            return sighting.text == nil && !isReported(sighting) ? sighting.first + Self.textPatience : nil
        }.min()
    }

    private func isReported(_ sighting: Sighting) -> Bool { sighting.first == .min }

    package mutating func advance(to now: Int64) -> [Change] { update(at: now) }

    private mutating func update(at now: Int64) -> [Change] {
        sightings = sightings.filter { entry in entry.value.lost.map { now < $0 + Self.patience } ?? true }
        var current: [String: FoundPeer] = [:]
        for service in sightings.keys.sorted(by: {
            ($0.instance, $0.type.description) < ($1.instance, $1.type.description)
        }) {
            guard var sighting = sightings[service] else { continue }
            if sighting.text == nil, !isReported(sighting) {
                guard now >= sighting.first + Self.textPatience else { continue }
            }
            sighting = Sighting(links: sighting.links, text: sighting.text, first: .min, lost: sighting.lost)
            sightings[service] = sighting
            let text = ServiceText(bytes: sighting.text ?? [])
            let id = text["id"].flatMap(Self.peerID)
            // A database that is served over CouchDB's wire, too, is two peers, of which each is reached in its own way.
            let wire = text["v"] == "c" ? " c" : ""
            let key = id.map { $0 + wire } ?? "\(service.instance).\(service.type.description.lowercased())"
            var peer =
                current[key]
                ?? FoundPeer(key: key, peerID: id, services: [], text: text, links: [])
            guard peer.services.count < Self.maximumServicesOfPeer else { continue }
            // The service that is there gives the peer its name.
            if sighting.lost == nil, let first = peer.services.first, sightings[first]?.lost != nil {
                peer.text = text
                peer.services.insert(service, at: 0)
            } else {
                peer.services.append(service)
            }
            peer.links.formUnion(sighting.links)
            current[key] = peer
        }
        return report(current)
    }

    private mutating func report(_ current: [String: FoundPeer]) -> [Change] {
        var changes: [Change] = []
        for key in reported.keys.sorted() where current[key] == nil {
            if let peer = reported[key] { changes.append(.gone(peer)) }
        }
        for key in current.keys.sorted() {
            guard let peer = current[key] else { continue }
            switch reported[key] {
            case nil: changes.append(.found(peer))
            // A peer that is seen on one more link is the same to an app.
            case let before? where before.services != peer.services || before.text != peer.text:
                changes.append(.changed(peer))
            default: break
            }
        }
        reported = current
        return changes
    }

    /// The ID in lower case if it is one.
    private static func peerID(_ text: String) -> String? {
        let lower = text.lowercased()
        guard lower.utf8.count == 32, lower.utf8.allSatisfy({ $0 &- 0x30 <= 9 || (0x61...0x66).contains($0) })
        else {
            return nil
        }
        return lower
    }
}
