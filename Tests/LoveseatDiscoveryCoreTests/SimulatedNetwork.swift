import LoveseatDiscoveryCore

/// Hosts on one link, on a virtual clock: every datagram reaches every host, the sender's own too, unless it is lost.
final class SimulatedNetwork {
    static let link = Link(interface: 2, isIPv6: false)

    struct Host {
        var node: MulticastNode
        let address: [UInt8]
        var isUp = true
        var events: [MulticastNode.Event] = []
    }

    struct Flight {
        let time: Int64
        let order: Int
        let bytes: [UInt8]
        let source: [UInt8]
        let receiver: Int
    }

    private(set) var now: Int64 = 0
    var hosts: [Host] = []
    /// In percent.
    var loss: UInt64 = 0
    private(set) var datagrams: [(time: Int64, bytes: [UInt8])] = []
    private var flights: [Flight] = []
    private var order = 0
    private var random: SplitMix

    init(seed: UInt64) { random = SplitMix(state: seed) }

    struct SplitMix {
        var state: UInt64
        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var z = state
            z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
            z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
            return z ^ (z >> 31)
        }
    }

    @discardableResult
    func addHost() -> Int {
        let number = hosts.count + 1
        let address: [UInt8] = [169, 254, UInt8(number >> 8), UInt8(number & 0xFF)]
        let source = RandomSource(state: random.next())
        var node = MulticastNode(hostLabel: "lv-\(number)") { source.next() }
        node.setInterfaces([Self.interface(address)], at: now)
        hosts.append(Host(node: node, address: address))
        return hosts.count - 1
    }

    static func interface(_ address: [UInt8]) -> LinkInterface {
        LinkInterface(index: 2, name: "lv0", addresses: [.init(bytes: address, prefixLength: 16)])
    }

    func publish(_ instance: String, port: UInt16 = 4_984, text: [UInt8] = [0], at host: Int) -> Int {
        let service = MulticastNode.Service(instance: instance, type: .loveseat, port: port, text: text)
        return with(host) { $0.publish(service, at: $1) }
    }

    func with<R>(_ host: Int, _ body: (inout MulticastNode, Int64) -> R) -> R {
        let result = body(&hosts[host].node, now)
        collect(host)
        return result
    }

    func setLink(up: Bool, of host: Int) {
        hosts[host].isUp = up
        let interfaces = up ? [Self.interface(hosts[host].address)] : []
        with(host) { $0.setInterfaces(interfaces, at: $1) }
    }

    /// Sends a datagram as if a host did.
    func inject(_ bytes: [UInt8], from source: [UInt8]) { transmit(bytes, from: source) }

    private func collect(_ host: Int) {
        for effect in hosts[host].node.drainEffects() {
            switch effect {
            case .event(let event): hosts[host].events.append(event)
            case .multicast(let bytes, _): transmit(bytes, from: hosts[host].address)
            case .unicast(let bytes, let address, _, _):
                for receiver in hosts.indices where hosts[receiver].address == address {
                    fly(bytes, from: hosts[host].address, to: receiver)
                }
            }
        }
    }

    private func transmit(_ bytes: [UInt8], from source: [UInt8]) {
        datagrams.append((now, bytes))
        if let sender = hosts.first(where: { $0.address == source }), !sender.isUp { return }
        for receiver in hosts.indices where hosts[receiver].isUp { fly(bytes, from: source, to: receiver) }
    }

    private func fly(_ bytes: [UInt8], from source: [UInt8], to receiver: Int) {
        let isOwn = hosts[receiver].address == source
        guard isOwn || random.next() % 100 >= loss else { return }
        order += 1
        flights.append(
            Flight(
                time: now + Int64(random.next() % 3),
                order: order,
                bytes: bytes,
                source: source,
                receiver: receiver
            )
        )
    }

    /// Lets the clock go on.
    func run(for duration: Int64) {
        let end = now + duration
        while true {
            let next = flights.min { ($0.time, $0.order) < ($1.time, $1.order) }
            let timer = hosts.indices.compactMap { index in
                hosts[index].node.deadline.map { (time: max($0, now), host: index) }
            }.min { $0.time < $1.time }
            let time = min(next?.time ?? .max, timer?.time ?? .max)
            guard time <= end else { break }
            now = time
            if let next, next.time == time {
                flights.removeAll { $0.order == next.order }
                let datagram = IncomingDatagram(
                    bytes: next.bytes,
                    source: next.source,
                    port: MulticastNode.port,
                    link: Self.link
                )
                if hosts[next.receiver].isUp {
                    with(next.receiver) { $0.receive(datagram, at: $1) }
                }
            } else if let timer {
                with(timer.host) { $0.advance(to: $1) }
            }
        }
        now = end
    }

    /// The names of services that a browse sees now.
    func seen(by host: Int) -> Set<String> {
        var names: Set<String> = []
        for event in hosts[host].events {
            switch event {
            case .appeared(_, let service, _): names.insert(service.instance)
            case .disappeared(_, let service, _): names.remove(service.instance)
            default: break
            }
        }
        return names
    }

    /// The names under which a host's services are published, by registration.
    func published(by host: Int) -> [Int: String] {
        var names: [Int: String] = [:]
        for case .published(let id, let name) in hosts[host].events { names[id] = name }
        return names
    }

    func messages(since time: Int64 = 0) -> [(time: Int64, message: DNSMessage)] {
        datagrams.filter { $0.time >= time }.compactMap { entry in
            (try? DNSMessage(entry.bytes)).map { (entry.time, $0) }
        }
    }
}

/// Numbers for one host. Only the simulation's thread uses it.
private final class RandomSource: @unchecked Sendable {
    private var generator: SimulatedNetwork.SplitMix
    init(state: UInt64) { generator = SimulatedNetwork.SplitMix(state: state) }
    func next() -> UInt64 { generator.next() }
}
