#if os(Linux)
import CDiscovery
private import Dispatch
import LoveseatAssertions
package import LoveseatDiscoveryCore
import LoveseatModel
private import Synchronization

/// DNS-SD through the Avahi daemon. When the daemon is restarted, everything is begun anew.
// @unchecked because everything that changes is touched on the queue only.
package final class AvahiProvider: DiscoveryProvider, @unchecked Sendable {
    private static let collision: Int32 = -8
    /// A service that does not answer for so long is gone.
    private static let silence = DispatchTimeInterval.seconds(3)
    private static let maximumSuspects = 64
    private static let retry = DispatchTimeInterval.seconds(2)
    /// After this, a daemon counts as not answering.
    private static let patience = DispatchTimeInterval.milliseconds(200)

    private struct Browse {
        let type: ServiceType
        let subtype: String?
        let report: @Sendable (BrowseReport) -> Void
        var object: AvahiClient.Object?
        var seen: [ServiceName: Set<Link>] = [:]
        var watches: [ServiceName: AvahiClient.Object] = [:]
    }

    private struct Resolution {
        let service: ServiceName
        let report: @Sendable ([MulticastNode.Location]) -> Void
        var objects: [AvahiClient.Object] = []
        var found: [Link: MulticastNode.Location] = [:]
    }

    private struct Suspect {
        /// Asks for the service itself, without Avahi's cache.
        let task: DiscoveryTask
        var isGone = false
    }

    private struct Registration {
        var service: MulticastNode.Service
        let report: @Sendable (PublishReport) -> Void
        var object: AvahiClient.Object?

        var interface: Int32 { service.interface.map { Int32($0) } ?? -1 }
        var subtypes: [String] {
            service.subtypes.map { "\($0.hasPrefix("_") ? "" : "_")\($0)._sub.\(service.type)" }
        }
    }

    private let queue = DispatchQueue(label: "loveseat.avahi")
    private var client: AvahiClient?
    private var generation = 0
    private var browses: [Int: Browse] = [:]
    private var resolutions: [Int: Resolution] = [:]
    private var registrations: [Int: Registration] = [:]
    private var nextNumber = 1
    /// Whether the host's name is changing: services are published again when it has one.
    private var isRenaming = false
    /// Services that could not be reached.
    private var suspects: [ServiceName: Suspect] = [:]
    private lazy var asker = makeAsker()
    private let makeAsker: @Sendable () -> MulticastProvider

    private struct Shared {
        weak var provider: AvahiProvider?
    }
    private static let shared = Mutex(Shared())

    /// The provider of this process; nil if the daemon does not answer at once.
    package static func answering(_ makeAsker: @escaping @Sendable () -> MulticastProvider)
        -> AvahiProvider?
    {
        guard lv_avahi_is_installed() != 0 else { return nil }
        let provider = any(makeAsker)
        let connected = DispatchSemaphore(value: 0)
        let box = AnswerBox()
        // The queue opens the connection before it runs this.
        provider.queue.async {
            box.answers.store(provider.client != nil, ordering: .releasing)
            connected.signal()
        }
        guard connected.wait(timeout: .now() + patience) == .success, box.answers.load(ordering: .acquiring)
        else { return nil }
        return provider
    }

    private final class AnswerBox: Sendable { let answers = Atomic(false) }

    private init(_ makeAsker: @escaping @Sendable () -> MulticastProvider) { self.makeAsker = makeAsker }

    /// The provider of this process, whether the daemon runs or not. `makeAsker` makes what asks for services without the daemon.
    package static func any(_ makeAsker: @escaping @Sendable () -> MulticastProvider) -> AvahiProvider {
        shared.withLock { shared in
            if let provider = shared.provider { return provider }
            let provider = AvahiProvider(makeAsker)
            shared.provider = provider
            provider.queue.async { provider.connect() }
            return provider
        }
    }

    /// Whether the daemon answers.
    package var isConnected: Bool { queue.sync { client != nil } }

    private func connect() {
        guard client == nil else { return impossible("the daemon is connected to twice") }
        generation += 1
        let current = generation
        client = AvahiClient { [weak self] event in
            guard case .state(let state) = event else { return impossible("a client gets \(event)") }
            // Avahi's thread may report while the provider is released.
            guard let self else { return }
            queue.async { [weak self] in self?.changed(state, current) }
        }
        guard client != nil else {
            return queue.asyncAfter(deadline: .now() + Self.retry) { [weak self] in self?.connect() }
        }
        for id in browses.keys.sorted() { begin(browse: id) }
        for id in resolutions.keys.sorted() { begin(resolution: id) }
        for id in registrations.keys.sorted() { begin(registration: id) }
    }

    private func changed(_ state: Int32, _ generation: Int) {
        // The event may be of a connection that has ended meanwhile.
        guard generation == self.generation, client != nil else { return }
        switch state {
        case 1, 3: isRenaming = true
        case 2 where isRenaming:
            isRenaming = false
            for id in registrations.keys.sorted() { publish(id) }
        case 100: disconnected()
        default: break
        }
    }

    /// The daemon has ended: its reports are no longer valid.
    private func disconnected() {
        client = nil
        for id in Array(browses.keys) {
            guard let browse = browses[id] else { continue }
            for (service, links) in browse.seen {
                for link in links { browse.report(.disappeared(service, link)) }
            }
            browses[id] = Browse(type: browse.type, subtype: browse.subtype, report: browse.report)
        }
        forgetSuspects()
        resolutions = resolutions.mapValues { Resolution(service: $0.service, report: $0.report) }
        for id in Array(registrations.keys) {
            registrations[id]?.object = nil
            registrations[id]?.report(
                .failed(LoveseatError(.timeout, "the Avahi daemon has ended: advertised again when it runs"))
            )
        }
        queue.asyncAfter(deadline: .now() + Self.retry) { [weak self] in self?.connect() }
    }

    // MARK: Browsing

    package func browse(
        _ type: ServiceType,
        subtype: String?,
        report: @escaping @Sendable (BrowseReport) -> Void
    ) -> DiscoveryTask {
        begin { [self] id in
            browses[id] = Browse(type: type, subtype: subtype, report: report)
            begin(browse: id)
        } end: { [self] id in
            guard let browse = browses.removeValue(forKey: id) else {
                return impossible("browse \(id) ends twice")
            }
            // A daemon that has ended knows of no browse.
            guard let client else { return }
            for watch in browse.watches.values { client.endWatch(watch) }
            if let object = browse.object { client.endBrowse(object) }
            forgetSuspects()
        }
    }

    private func begin(
        _ start: @escaping @Sendable (Int) -> Void,
        end: @escaping @Sendable (Int) -> Void
    ) -> DiscoveryTask {
        let number = QueueNumber()
        queue.async { [self] in start(newNumber(number)) }
        return DiscoveryTask { [queue] in
            queue.async { if let id = number.value { end(id) } }
        }
    }

    private func newNumber(_ number: QueueNumber) -> Int {
        defer { nextNumber += 1 }
        number.value = nextNumber
        return nextNumber
    }

    private func begin(browse id: Int) {
        // While the daemon does not run, the browse waits for `connect()`.
        guard let browse = browses[id], let client else { return }
        let prefix = browse.subtype.map { "\($0.hasPrefix("_") ? "" : "_")\($0)._sub." } ?? ""
        let current = generation
        browses[id]?.object = client.browse("\(prefix)\(browse.type)") { [weak self] event in
            self?.queue.async { [weak self] in
                // The provider may be released, or the daemon restarted, while the event waits on the queue.
                guard let self, generation == current else { return }
                browsed(event, id)
            }
        }
    }

    private func browsed(_ event: AvahiEvent, _ id: Int) {
        guard case .browsed(let interface, let isIPv6, let isThere, let name) = event else {
            return impossible("a browse gets \(event)")
        }
        // The browse, or the daemon, may have ended while the event waited on the queue.
        guard let browse = browses[id], let client else { return }
        let service = ServiceName(instance: name, type: browse.type)
        let link = Link(interface: interface, isIPv6: isIPv6)
        if isThere {
            browses[id]?.seen[service, default: []].insert(link)
            // Avahi tells a new browse of what is gone, too.
            if suspects[service]?.isGone != true { browse.report(.appeared(service, link)) }
            // A service is watched once, whatever its links, and not more of them than are reported.
            guard browse.watches[service] == nil, browse.watches.count < PeerTable.maximumPeers else {
                return
            }
            let current = generation
            browses[id]?.watches[service] = client.watch(name, "\(browse.type)") { [weak self] event in
                self?.queue.async { [weak self] in
                    // A changed text is removed and added; and the daemon may be restarted while the event waits.
                    guard let self, generation == current, case .text(true, let text) = event else { return }
                    browses[id]?.report(.text(service, text))
                }
            }
        } else {
            browses[id]?.seen[service]?.remove(link)
            browse.report(.disappeared(service, link))
            // The service may be on other links still, or was never seen on this one.
            guard browses[id]?.seen[service]?.isEmpty == true else { return }
            browses[id]?.seen[service] = nil
            forgetSuspects()
            if let watch = browses[id]?.watches.removeValue(forKey: service) { client.endWatch(watch) }
        }
    }

    // MARK: Resolving

    package func resolve(
        _ service: ServiceName,
        report: @escaping @Sendable ([MulticastNode.Location]) -> Void
    ) -> DiscoveryTask {
        begin { [self] id in
            resolutions[id] = Resolution(service: service, report: report)
            begin(resolution: id)
        } end: { [self] id in
            guard let resolution = resolutions.removeValue(forKey: id) else {
                return impossible("resolution \(id) ends twice")
            }
            for object in resolution.objects { client?.endResolve(object) }
        }
    }

    private func begin(resolution id: Int) {
        // While the daemon does not run, the resolution waits for `connect()`.
        guard let resolution = resolutions[id], let client else { return }
        let current = generation
        resolutions[id]?.objects = [false, true].compactMap { isIPv6 in
            client.resolve(resolution.service.instance, "\(resolution.service.type)", isIPv6: isIPv6) {
                [weak self] event in
                self?.queue.async { [weak self] in
                    // The provider may be released, or the daemon restarted, while the event waits on the queue.
                    guard let self, generation == current else { return }
                    resolved(event, id)
                }
            }
        }
    }

    private func resolved(_ event: AvahiEvent, _ id: Int) {
        guard case .resolved(let interface, _, let host, let address, let port, let text) = event else {
            return impossible("a resolution gets \(event)")
        }
        // The resolution may have ended while the event waited on the queue.
        guard let resolution = resolutions[id] else { return }
        let link = Link(interface: interface, isIPv6: address.count == 16)
        let before = resolution.found[link]
        let addresses = (before?.addresses ?? []).filter { $0 != address } + [address]
        resolutions[id]?.found[link] = MulticastNode.Location(
            link: link,
            host: host,
            port: port,
            addresses: Array(addresses.suffix(8)),
            text: text
        )
        if let found = resolutions[id]?.found.values { resolution.report(Array(found)) }
    }

    /// Avahi asks again only when a record is about to expire, and has no call to ask earlier: this asks beside it.
    package func reconfirm(_ service: ServiceName) {
        queue.async { [self] in
            // It is asked already, too many are, or no browse has seen the service.
            guard suspects[service] == nil, suspects.count < Self.maximumSuspects,
                browses.values.contains(where: { $0.seen[service] != nil })
            else { return }
            let task = asker.resolve(service) { [weak self] locations in
                // The provider may be released meanwhile, and a service without a location has not answered.
                guard let self, !locations.isEmpty else { return }
                queue.async { [weak self] in self?.answered(service) }
            }
            suspects[service] = Suspect(task: task)
            queue.asyncAfter(deadline: .now() + Self.silence) { [weak self] in self?.silent(service) }
        }
    }

    /// The suspect is there.
    private func answered(_ service: ServiceName) {
        // It has answered in time, or no browse knows it any more.
        guard let suspect = suspects.removeValue(forKey: service), suspect.isGone else { return }
        for browse in browses.values {
            for link in browse.seen[service] ?? [] { browse.report(.appeared(service, link)) }
        }
    }

    /// The suspect has not answered. From now on this waits for its return, of which Avahi will not tell: it still knows the service.
    private func silent(_ service: ServiceName) {
        // It has answered, or no browse knows it any more.
        guard suspects[service]?.isGone == false else { return }
        suspects[service]?.isGone = true
        for browse in browses.values {
            for link in browse.seen[service] ?? [] { browse.report(.disappeared(service, link)) }
        }
    }

    /// Ends the watch over suspects that no browse knows any more.
    private func forgetSuspects() {
        suspects = suspects.filter { service, _ in browses.values.contains { $0.seen[service] != nil } }
    }

    // MARK: Publishing

    package func publish(
        _ service: MulticastNode.Service,
        report: @escaping @Sendable (PublishReport) -> Void
    ) -> Publication {
        let number = QueueNumber()
        queue.async { [self] in
            let id = newNumber(number)
            registrations[id] = Registration(service: service, report: report)
            begin(registration: id)
        }
        return Publication { [self] text in
            queue.async { [self] in if let id = number.value { update(id, text) } }
        } onWithdraw: { [self] done in
            queue.async { [self] in
                if let id = number.value, let object = registrations.removeValue(forKey: id)?.object {
                    client?.endGroup(object)
                }
                done()
            }
        }
    }

    private func begin(registration id: Int) {
        // While the daemon does not run, the service waits for `connect()`.
        guard let client else { return }
        let current = generation
        registrations[id]?.object = client.group { [weak self] event in
            self?.queue.async { [weak self] in
                // The provider may be released, or the daemon restarted, while the event waits on the queue.
                guard let self, generation == current else { return }
                guard case .published(let state) = event else { return impossible("a group gets \(event)") }
                published(state, id)
            }
        }
        guard registrations[id]?.object != nil else {
            registrations[id]?.report(.failed(Self.failure(client.lastError)))
            return
        }
        publish(id)
    }

    private func publish(_ id: Int) {
        // A change of the host's name publishes every service again, also one whose group the daemon has refused.
        guard let registration = registrations[id], let object = registration.object, let client else {
            return
        }
        let service = registration.service
        let error = client.publish(
            object,
            interface: registration.interface,
            service.instance,
            "\(service.type)",
            subtypes: registration.subtypes,
            port: service.port,
            text: service.text
        )
        if error == Self.collision {
            registrations[id]?.service.instance = InstanceName.alternative(to: service.instance)
            publish(id)
        } else if error < 0 {
            registration.report(.failed(Self.failure(error)))
        }
    }

    private func published(_ state: Int32, _ id: Int) {
        // The service may be withdrawn, or the daemon end, while the event waits on the queue.
        guard let registration = registrations[id], let client else { return }
        switch state {
        case 2: registration.report(.published(instance: registration.service.instance, host: client.host))
        case 3:
            registrations[id]?.service.instance = InstanceName.alternative(to: registration.service.instance)
            publish(id)
        case 4: registration.report(.failed(Self.failure(-1)))
        default: break
        }
    }

    private func update(_ id: Int, _ text: [UInt8]) {
        registrations[id]?.service.text = text
        // While the daemon does not run, the text waits: it is published with the service.
        guard let registration = registrations[id], let object = registration.object, let client else {
            return
        }
        let error = client.update(
            object,
            interface: registration.interface,
            registration.service.instance,
            "\(registration.service.type)",
            text: text
        )
        if error < 0 { registration.report(.failed(Self.failure(error))) }
    }

    private static func failure(_ error: Int32) -> LoveseatError {
        LoveseatError(
            .unsupported,
            "the Avahi daemon does not advertise the listener: \(AvahiClient.message(error)); see avahi-daemon.conf"
        )
    }
}
#endif
