import LoveseatDiscoveryCore
import Testing

@Suite("Peers from sightings")
struct PeerTableTests {
    private let ipv4 = Link(interface: 2, isIPv6: false)
    private let ipv6 = Link(interface: 2, isIPv6: true)
    private let other = Link(interface: 3, isIPv6: false)
    private let trips = ServiceName(instance: "trips", type: .loveseat)
    private static func text(id: String) -> [UInt8] {
        (try? ServiceText([.init(key: "id", value: Array(id.utf8))]))?.bytes ?? []
    }
    private let id = String(repeating: "ab", count: 16)

    @Test("A peer on two families and two interfaces is found once, and gone when it is gone everywhere")
    func merges() {
        var table = PeerTable()
        #expect(table.appeared(trips, ipv4, at: 0) == [])
        let found = table.text(Self.text(id: id), of: trips, at: 1)
        guard case .found(let peer)? = found.first else {
            Issue.record("not found")
            return
        }
        #expect(peer.peerID == id)
        for link in [ipv6, other] {
            #expect(table.appeared(trips, link, at: 2) == [])
        }
        for link in [ipv4, ipv6] {
            #expect(
                table.disappeared(trips, link, at: 10).allSatisfy {
                    if case .gone = $0 { false } else { true }
                }
            )
        }
        _ = table.disappeared(trips, other, at: 20)
        #expect(table.advance(to: 1_019) == [])
        #expect(table.deadline == 1_020)
        guard case .gone? = table.advance(to: 1_020).first else {
            Issue.record("not gone")
            return
        }
        #expect(table.peers.isEmpty)
    }

    @Test("A peer that comes back within a second was never gone")
    func debounce() {
        var table = PeerTable()
        _ = table.appeared(trips, ipv4, at: 0)
        _ = table.text(Self.text(id: id), of: trips, at: 0)
        _ = table.disappeared(trips, ipv4, at: 1_000)
        #expect(table.appeared(trips, ipv4, at: 1_900) == [])
        #expect(table.advance(to: 10_000) == [])
        #expect(table.peers.count == 1)
    }

    @Test("A peer that takes another name stays one peer by its ID")
    func rename() {
        var table = PeerTable()
        let renamed = ServiceName(instance: "trips #2", type: .loveseat)
        _ = table.appeared(trips, ipv4, at: 0)
        _ = table.text(Self.text(id: id), of: trips, at: 0)
        _ = table.disappeared(trips, ipv4, at: 100)
        _ = table.appeared(renamed, ipv4, at: 200)
        var changes = table.text(Self.text(id: id), of: renamed, at: 200)
        changes += table.advance(to: 5_000)
        #expect(changes.allSatisfy { if case .changed = $0 { true } else { false } })
        #expect(table.peers.map { $0.services } == [[renamed]])
    }

    @Test("A database that is served over CouchDB's wire, too, is two peers")
    func wires() {
        var table = PeerTable()
        for (name, protocols) in [("trips", "b2,b3"), ("trips #2", "c")] {
            let service = ServiceName(instance: name, type: .loveseat)
            let entries = [
                ServiceText.Entry(key: "id", value: Array(id.utf8)),
                .init(key: "v", value: Array(protocols.utf8)),
            ]
            _ = table.appeared(service, ipv4, at: 0)
            _ = table.text((try? ServiceText(entries))?.bytes ?? [], of: service, at: 0)
        }
        #expect(table.peers.map(\.key) == [id, "\(id) c"])
        #expect(table.peers.map(\.peerID) == [id, id])
    }

    @Test("A peer without a TXT record is found after half a second")
    func withoutText() {
        var table = PeerTable()
        _ = table.appeared(trips, ipv4, at: 0)
        #expect(table.deadline == 500)
        #expect(table.advance(to: 500).count == 1)
        #expect(table.peers.map(\.key) == ["trips._loveseat._tcp"])
    }

    @Test("512 peers are kept; that there are more is said once")
    func overflow() {
        var table = PeerTable()
        for number in 0..<512 {
            #expect(
                !table.appeared(ServiceName(instance: "\(number)", type: .loveseat), ipv4, at: 0).contains(
                    .overflow
                )
            )
        }
        #expect(table.appeared(ServiceName(instance: "a", type: .loveseat), ipv4, at: 0) == [.overflow])
        #expect(table.appeared(ServiceName(instance: "b", type: .loveseat), ipv4, at: 0) == [])
        #expect(table.advance(to: 500).count == 512)
    }

    @Test("An ID that is not 32 hexadecimal digits is ignored")
    func badID() {
        var table = PeerTable()
        _ = table.appeared(trips, ipv4, at: 0)
        _ = table.text(Self.text(id: "ana"), of: trips, at: 0)
        #expect(table.peers.map(\.peerID) == [nil])
    }
}
