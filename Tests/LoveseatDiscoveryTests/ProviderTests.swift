import LoveseatDiscovery
import LoveseatDiscoveryCore
import LoveseatTesting
import Synchronization
import Testing

/// The providers of DNS-SD. Nothing is sent to a network here: the interfaces that are named do not exist.
struct ProviderTests {
    /// Counts calls.
    private final class Counter: Sendable {
        private let value = Atomic(0)
        var count: Int { value.load(ordering: .acquiring) }
        func increment() { value.wrappingAdd(1, ordering: .acquiringAndReleasing) }
    }

    private static func provider(_ interface: String) -> MulticastProvider {
        MulticastProvider.shared(interfaces: [interface]) { AsyncStream { $0.finish() } }
    }

    private static let service = MulticastNode.Service(
        instance: "trips",
        type: .loveseat,
        port: 4_984,
        text: [0]
    )

    // MARK: Tasks

    @Test func `a task ends when it is released`() {
        let ends = Counter()
        var task: DiscoveryTask? = DiscoveryTask { ends.increment() }
        #expect(ends.count == 0)
        withExtendedLifetime(task) {}
        task = nil
        #expect(ends.count == 1)
    }

    @Test func `a publication is withdrawn once, however often it is asked to`() async {
        let withdrawals = Counter()
        let texts = Mutex<[[UInt8]]>([])
        do {
            let publication = Publication { text in
                texts.withLock { $0.append(text) }
            } onWithdraw: { done in
                withdrawals.increment()
                done()
            }
            publication.update(text: [1])
            publication.update(text: [2])
            await publication.withdraw()
            await publication.withdraw()
        }
        #expect(withdrawals.count == 1)
        #expect(texts.withLock { $0 } == [[1], [2]])
    }

    @Test func `a publication that is released is withdrawn`() {
        let withdrawals = Counter()
        do {
            let publication = Publication { _ in
            } onWithdraw: { done in
                withdrawals.increment()
                done()
            }
            publication.update(text: [1])
        }
        #expect(withdrawals.count == 1)
    }

    // MARK: Multicast

    @Test func `there is one provider for the same interfaces, until it is released`() {
        let streams = Counter()
        func shared(_ names: Set<String>) -> MulticastProvider {
            MulticastProvider.shared(interfaces: names) {
                streams.increment()
                return AsyncStream { $0.finish() }
            }
        }
        do {
            let (one, same) = (shared(["noneA", "noneB"]), shared(["noneB", "noneA"]))
            let other = shared(["noneA"])
            #expect(one === same)
            #expect(one !== other)
            #expect(streams.count == 2)
        }
    }

    @Test func `a provider without interfaces is not usable, and ends what is begun without a report`() async
    {
        let provider = Self.provider("noneC")
        #expect(!provider.isUsable)
        let reports = Counter()
        let name = ServiceName(instance: "trips", type: .loveseat)
        var tasks: [DiscoveryTask] = (0..<20).flatMap { _ in
            [
                provider.browse(.loveseat, subtype: nil) { _ in reports.increment() },
                provider.browse(.loveseat, subtype: "room") { _ in reports.increment() },
                provider.resolve(name) { locations in if !locations.isEmpty { reports.increment() } },
            ]
        }
        provider.reconfirm(name)
        tasks.removeAll()
        // The queue has ended them by now: it runs one after the other.
        #expect(!provider.isUsable)
        #expect(reports.count == 0)
    }

    @Test func `a service is published without interfaces under its own name, changed and withdrawn`() async {
        let provider = Self.provider("noneD")
        let reports = Mutex<[String]>([])
        let publication = provider.publish(Self.service) { report in
            if case .published(let instance, let host) = report {
                reports.withLock { $0.append("\(instance) \(host.hasPrefix("lv-"))") }
            }
        }
        publication.update(text: [1, 65])
        await publication.withdraw()
        #expect(Set(reports.withLock { $0 }).isSubset(of: ["trips true"]))
        // A publication that never got its turn is withdrawn, too.
        await provider.publish(Self.service) { _ in Issue.record("it is published") }.withdraw()
        #expect(!provider.isUsable)
    }

    @Test func `changes of the network are asked for as long as the provider lives`() async {
        let (changes, change) = AsyncStream<Void>.makeStream()
        let ended = AsyncStream<Void>.makeStream()
        change.onTermination = { _ in ended.continuation.finish() }
        do {
            let provider = MulticastProvider.shared(interfaces: ["noneE"]) { changes }
            change.yield()
            #expect(!provider.isUsable)
        }
        // The release of the provider cancels the loop over the changes.
        for await _ in ended.stream {}
    }

    // MARK: Interfaces

    @Test
    func `interfaces are listed with their addresses, by name, and the loopback only if all are asked for`()
        throws
    {
        let all = HostAddresses.interfaces(all: true)
        let loopback = try #require(
            all.first { $0.addresses.contains { $0.bytes == [127, 0, 0, 1] } }
        )
        #expect(loopback.addresses.contains { $0.bytes == [127, 0, 0, 1] && $0.prefixLength == 8 })
        #expect(HostAddresses.name(of: loopback.index) == loopback.name)
        #expect(HostAddresses.interfaces(named: [loopback.name], all: true) == [loopback])
        #expect(HostAddresses.interfaces(named: [], all: true).isEmpty)
        #expect(HostAddresses.interfaces().allSatisfy { $0.index != loopback.index })
        #expect(all.map(\.index) == all.map(\.index).sorted())
        #expect(Set(all.map(\.index)).count == all.count)
        #expect(HostAddresses.name(of: .max) == nil)
    }

    #if os(Linux)
    // MARK: Avahi

    @Test func `a callback that comes late finds nobody, and numbers are not used again`() throws {
        let events = Mutex<[Int32]>([])
        @Sendable func note(_ event: AvahiEvent) {
            if case .state(let state) = event { events.withLock { $0.append(state) } }
        }
        let first = AvahiReceivers.add(note)
        AvahiReceivers.report(.state(1), to: AvahiReceivers.context(first))
        AvahiReceivers.remove(first)
        AvahiReceivers.report(.state(2), to: AvahiReceivers.context(first))
        let second = AvahiReceivers.add(note)
        #expect(second != first)
        AvahiReceivers.report(.state(3), to: AvahiReceivers.context(first))
        AvahiReceivers.report(.state(4), to: nil)
        AvahiReceivers.report(.state(5), to: AvahiReceivers.context(second))
        AvahiReceivers.remove(second)
        #expect(events.withLock { $0 } == [1, 5])
    }

    @Test func `the receiver of a callback may end itself in the callback`() {
        let ends = Counter()
        let number = Mutex<UInt>(0)
        let added = AvahiReceivers.add { _ in
            AvahiReceivers.remove(number.withLock { $0 })
            ends.increment()
        }
        number.withLock { $0 = added }
        for _ in 0..<2 { AvahiReceivers.report(.published(2), to: AvahiReceivers.context(added)) }
        #expect(ends.count == 1)
    }

    @Test
    func
        `all of the process share one connection to the daemon, which takes requests whether it runs or not`()
        async
    {
        let make: @Sendable () -> MulticastProvider = { Self.provider("noneF") }
        let (provider, same) = (AvahiProvider.any(make), AvahiProvider.any(make))
        #expect(provider === same)
        let isConnected = provider.isConnected
        let name = ServiceName(instance: "nobody", type: .loveseat)
        var tasks = [
            provider.browse(.loveseat, subtype: "nobody") { _ in Issue.record("a service") },
            provider.resolve(name) { _ in Issue.record("a service") },
        ]
        provider.reconfirm(name)
        tasks.removeAll()
        // The queue has ended them by now: a second end would be impossible.
        #expect(provider.isConnected == isConnected)
    }
    #endif
}
