import CDiscovery
private import Dispatch
package import LoveseatDiscoveryCore
private import LoveseatModel
import LoveseatPlatform
private import Synchronization

/// Loveseat's own multicast DNS: a ``MulticastNode`` with its sockets and a clock.
///
/// NIO cannot say out of which interface a datagram goes, so these are sockets of its own.
// @unchecked because everything that changes is touched on the queue only.
package final class MulticastProvider: DiscoveryProvider, @unchecked Sendable {
    private let queue = DispatchQueue(label: "loveseat.multicast")
    private let timer: any DispatchSourceTimer
    private let interfaceNames: Set<String>?
    private var node: MulticastNode
    private var sockets: [Bool: Socket] = [:]
    private var browsers: [Int: @Sendable (BrowseReport) -> Void] = [:]
    private var resolvers: [Int: @Sendable ([MulticastNode.Location]) -> Void] = [:]
    private var publishers: [Int: @Sendable (PublishReport) -> Void] = [:]
    private var watching: Task<Void, Never>?

    private struct Socket {
        let descriptor: Int32
        let source: any DispatchSourceRead
        var joined: Set<UInt32> = []
    }

    private struct Shared {
        weak var provider: MulticastProvider?
    }
    private static let shared = Mutex<[Set<String>?: Shared]>([:])

    /// The provider of this process for some interfaces, or for all. `changes` makes a stream of changes of the host's network.
    package static func shared(
        interfaces: Set<String>?,
        changes: () -> AsyncStream<Void>
    ) -> MulticastProvider {
        shared.withLock { shared in
            if let provider = shared[interfaces]?.provider { return provider }
            let provider = MulticastProvider(interfaces: interfaces, changes: changes())
            shared[interfaces] = Shared(provider: provider)
            return provider
        }
    }

    private init(interfaces: Set<String>?, changes: AsyncStream<Void>) {
        interfaceNames = interfaces
        let label = String(UInt32.random(in: 0...UInt32.max), radix: 16)
        node = MulticastNode(hostLabel: "lv-" + String(repeating: "0", count: 8 - label.count) + label) {
            UInt64.random(in: 0...UInt64.max)
        }
        timer = DispatchSource.makeTimerSource(queue: queue)
        timer.setEventHandler { [weak self] in self?.perform { _, _ in } }
        timer.resume()
        queue.sync { updateInterfaces() }
        watching = Task { [weak self] in
            for await _ in changes { self?.networkChanged() }
        }
    }

    deinit {
        watching?.cancel()
        timer.cancel()
        for socket in sockets.values { socket.source.cancel() }
    }

    private func networkChanged() { queue.async { [self] in updateInterfaces() } }

    /// Whether there is an interface that can be used.
    package var isUsable: Bool { queue.sync { sockets.values.contains { !$0.joined.isEmpty } } }

    // MARK: The node

    private static var now: Int64 { Int64(DispatchTime.now().uptimeNanoseconds / 1_000_000) }

    /// Changes the node on the queue, does what is due, and performs the effects.
    private func perform<Result>(_ body: (inout MulticastNode, Int64) -> Result) -> Result {
        let now = Self.now
        let result = body(&node, now)
        node.advance(to: now)
        for effect in node.drainEffects() {
            switch effect {
            case .multicast(let bytes, let link): send(bytes, link, nil, MulticastNode.port)
            case .unicast(let bytes, let address, let port, let link): send(bytes, link, address, port)
            case .event(let event): report(event)
            }
        }
        if let deadline = node.deadline {
            timer.schedule(
                deadline: .now() + .milliseconds(Int(max(0, deadline - now))),
                leeway: .milliseconds(1)
            )
        } else {
            timer.schedule(deadline: .distantFuture)
        }
        return result
    }

    private func report(_ event: MulticastNode.Event) {
        switch event {
        case .appeared(let id, let service, let link): browsers[id]?(.appeared(service, link))
        case .disappeared(let id, let service, let link): browsers[id]?(.disappeared(service, link))
        case .text(let id, let service, let text): browsers[id]?(.text(service, text))
        case .resolved(let id, let locations): resolvers[id]?(locations)
        case .published(let id, let instance):
            publishers[id]?(.published(instance: instance, host: node.host))
        }
    }

    // MARK: Sockets

    private func updateInterfaces() {
        let interfaces = HostAddresses.interfaces(named: interfaceNames)
        for isIPv6 in [false, true] {
            let wanted = Set(interfaces.flatMap(\.links).filter { $0.isIPv6 == isIPv6 }.map(\.interface))
            if sockets[isIPv6] == nil, !wanted.isEmpty { sockets[isIPv6] = open(isIPv6) }
            guard let socket = sockets[isIPv6] else { continue }
            for interface in socket.joined.subtracting(wanted) {
                _ = lv_multicast_join(socket.descriptor, isIPv6 ? 1 : 0, interface, 0)
                sockets[isIPv6]?.joined.remove(interface)
            }
            for interface in wanted.subtracting(socket.joined)
            where lv_multicast_join(socket.descriptor, isIPv6 ? 1 : 0, interface, 1) == 0 {
                sockets[isIPv6]?.joined.insert(interface)
            }
        }
        perform { $0.setInterfaces(interfaces, at: $1) }
    }

    private func open(_ isIPv6: Bool) -> Socket? {
        let descriptor = lv_multicast_open(isIPv6 ? 1 : 0)
        guard descriptor >= 0 else { return nil }
        let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
        source.setEventHandler { [weak self] in self?.receive(descriptor, isIPv6) }
        source.setCancelHandler { close(descriptor) }
        source.resume()
        return Socket(descriptor: descriptor, source: source)
    }

    /// How many datagrams are read before timers get their turn.
    private static let burst = 64

    private func receive(_ descriptor: Int32, _ isIPv6: Bool) {
        var buffer = [UInt8](repeating: 0, count: DNSMessage.maximumSize + 1)
        for _ in 0..<Self.burst {
            var address = [UInt8](repeating: 0, count: 16)
            var (port, interface): (UInt16, UInt32) = (0, 0)
            let count = lv_multicast_receive(
                descriptor,
                isIPv6 ? 1 : 0,
                &buffer,
                buffer.count,
                &address,
                &port,
                &interface
            )
            if count < 0 { return }
            let datagram = IncomingDatagram(
                bytes: Array(buffer.prefix(count)),
                source: Array(address.prefix(isIPv6 ? 16 : 4)),
                port: port,
                link: Link(interface: interface, isIPv6: isIPv6)
            )
            perform { $0.receive(datagram, at: $1) }
        }
    }

    /// Datagrams that cannot be sent are lost, as others are on the way.
    private func send(_ bytes: [UInt8], _ link: Link, _ address: [UInt8]?, _ port: UInt16) {
        // The group cannot be joined on every interface, and an interface may have just gone down.
        guard let socket = sockets[link.isIPv6], socket.joined.contains(link.interface) else { return }
        let family: Int32 = link.isIPv6 ? 1 : 0
        if let address {
            _ = lv_multicast_send(
                socket.descriptor,
                family,
                link.interface,
                address,
                port,
                bytes,
                bytes.count
            )
        } else {
            _ = lv_multicast_send(socket.descriptor, family, link.interface, nil, port, bytes, bytes.count)
        }
    }

    // MARK: DiscoveryProvider

    package func browse(
        _ type: ServiceType,
        subtype: String?,
        report: @escaping @Sendable (BrowseReport) -> Void
    ) -> DiscoveryTask {
        begin { [self] in
            // The node reports what it knows before it returns the number.
            let id = node.nextNumber
            browsers[id] = report
            guard perform({ $0.browse(type, subtype: subtype, at: $1) }) != nil else {
                browsers[id] = nil
                return nil
            }
            return id
        } end: { [self] id in
            browsers[id] = nil
            perform { node, _ in node.endBrowse(id) }
        }
    }

    package func resolve(
        _ service: ServiceName,
        report: @escaping @Sendable ([MulticastNode.Location]) -> Void
    ) -> DiscoveryTask {
        begin { [self] in
            let id = node.nextNumber
            resolvers[id] = report
            guard perform({ $0.resolve(service, at: $1) }) != nil else {
                resolvers[id] = nil
                return nil
            }
            return id
        } end: { [self] id in
            resolvers[id] = nil
            perform { node, _ in node.endResolution(id) }
        }
    }

    /// Begins something on the queue, and ends it when the task is released.
    private func begin(
        _ start: @escaping @Sendable () -> Int?,
        end: @escaping @Sendable (Int) -> Void
    ) -> DiscoveryTask {
        let number = QueueNumber()
        queue.async { number.value = start() }
        return DiscoveryTask { [queue] in queue.async { if let id = number.value { end(id) } } }
    }

    package func publish(
        _ service: MulticastNode.Service,
        report: @escaping @Sendable (PublishReport) -> Void
    ) -> Publication {
        let number = QueueNumber()
        queue.async { [self] in
            let id = perform { $0.publish(service, at: $1) }
            number.value = id
            publishers[id] = report
        }
        return Publication { [self] text in
            queue.async { [self] in
                if let id = number.value { perform { $0.update(id, text: text, at: $1) } }
            }
        } onWithdraw: { [self] done in
            queue.async { [self] in
                if let id = number.value {
                    publishers[id] = nil
                    perform { node, _ in node.withdraw(id) }
                }
                done()
            }
        }
    }

    package func reconfirm(_ service: ServiceName) {
        queue.async { [self] in perform { $0.reconfirm(service, at: $1) } }
    }
}
