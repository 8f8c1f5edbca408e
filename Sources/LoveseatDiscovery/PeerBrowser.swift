private import Dispatch
import Logging
import LoveseatCore
import LoveseatDiscoveryCore
public import LoveseatModel
private import Synchronization

/// Finds peers that are advertised on this network.
///
/// ```swift
/// for await event in try PeerBrowser(type: "_myapp._tcp") {
///     if case .found(let peer) = event { print(peer.name) }
/// }
/// ```
///
/// Each iterator begins with the peers that are there. The search ends when the browser and its iterators are released. At most 512 peers
/// are reported. On Apple's systems, an app needs `NSLocalNetworkUsageDescription`, and each type in `NSBonjourServices`.
public struct PeerBrowser: AsyncSequence, Sendable {
    /// An event of a peer.
    public typealias Element = PeerEvent
    /// Iterating never throws.
    public typealias Failure = Never

    private let session: BrowseSession

    /// Begins to search.
    ///
    /// - Parameters:
    ///   - type: The type of service. Apps use a type of their own, so that they find only each other.
    ///   - subtype: Only services that are advertised with this subtype; nil for all.
    ///   - method: The implementation to use.
    ///   - interfaces: The names of the only interfaces to search on, which ``DiscoveryMethod/multicast`` honours; nil for all.
    /// - Throws: `LoveseatError`: `invalidParameter` if the type or subtype is not valid.
    public init(
        type: String = "_loveseat._tcp",
        subtype: String? = nil,
        method: DiscoveryMethod = .automatic,
        interfaces: Set<String>? = nil
    ) throws(LoveseatError) {
        session = try BrowseSession(
            type,
            subtype: subtype,
            DiscoveryOrigin(method: method, interfaces: interfaces)
        )
    }

    /// The peers that are there now.
    public var peers: [DiscoveredPeer] { session.peers }

    /// Why no peer can be found at the moment, such as no interface that multicasts can be sent on; nil if it is possible.
    public var problem: LoveseatError? {
        get async { await session.origin.problem() }
    }

    /// Returns an iterator that begins with the peers that are there.
    public func makeAsyncIterator() -> Iterator { Iterator(session: session) }

    /// Waits for the events of peers.
    public struct Iterator: AsyncIteratorProtocol {
        private let session: BrowseSession
        private var events: Feed<PeerEvent>.Iterator

        fileprivate init(session: BrowseSession) {
            self.session = session
            events = session.feed().makeAsyncIterator()
        }

        /// Waits for the next event and returns it, or nil if the task is cancelled.
        public mutating func next() async -> PeerEvent? { await events.next() }

        /// Waits for the next event and returns it, or nil if the task is cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> PeerEvent? {
            await events.next(isolation: actor)
        }
    }
}

/// A search that goes on until it is released.
final class BrowseSession: Sendable {
    private struct State {
        var table = PeerTable()
        var feeds = FeedSet<PeerEvent>()
        var task: DiscoveryTask?
        var interfaces: [UInt32: String] = [:]
        var hasWarned = false
    }

    let origin: DiscoveryOrigin
    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "loveseat.browse")

    init(_ type: String, subtype: String?, _ origin: DiscoveryOrigin) throws(LoveseatError) {
        let type = try ServiceType.validated(type)
        try ServiceType.validate(subtypes: subtype.map { [$0] } ?? [])
        self.origin = origin
        origin.withProvider { [weak self] provider in
            if self == nil { return }
            let task = provider.browse(type, subtype: subtype) { [weak self] report in self?.handle(report) }
            self?.state.withLock { $0.task = task }
        }
    }

    var peers: [DiscoveredPeer] {
        state.withLock { state in state.table.peers.compactMap { peer($0, &state) } }
    }

    private static var now: Int64 { Int64(DispatchTime.now().uptimeNanoseconds / 1_000_000) }

    private func peer(_ found: FoundPeer, _ state: inout State) -> DiscoveredPeer? {
        if found.links.contains(where: { state.interfaces[$0.interface] == nil }) {
            let interfaces = HostAddresses.interfaces(all: true)
            state.interfaces = Dictionary(interfaces.map { ($0.index, $0.name) }) { first, _ in first }
        }
        return DiscoveredPeer(found, origin, interfaces: state.interfaces)
    }

    /// A feed that begins with the peers that are there.
    func feed() -> Feed<PeerEvent> {
        // An event beyond the bound replaces the last one that waits.
        let buffer = FeedBuffer<PeerEvent>(limit: 4 << 20, cost: { _ in 2_048 }, merge: { $0 = $1 })
        state.withLock { state in
            for found in state.table.peers {
                if let peer = peer(found, &state) { buffer.push(.found(peer)) }
            }
            state.feeds.insert(buffer)
        }
        return Feed(buffer) { [weak self] in self?.state.withLock { $0.feeds.remove(buffer) } }
    }

    private func handle(_ report: BrowseReport) {
        change { table, now in
            switch report {
            case .appeared(let service, let link): table.appeared(service, link, at: now)
            case .disappeared(let service, let link): table.disappeared(service, link, at: now)
            case .text(let service, let text): table.text(text, of: service, at: now)
            }
        }
    }

    private func change(_ body: (inout PeerTable, Int64) -> [PeerTable.Change]) {
        let now = Self.now
        // Within the lock, so that feeds have the events in their order.
        let deadline = state.withLock { state -> Int64? in
            for change in body(&state.table, now) {
                guard let event = event(change, &state) else { continue }
                for feed in state.feeds.all { feed.push(event) }
            }
            return state.table.deadline
        }
        // No peer waits for its text, or for its return.
        guard let deadline else { return }
        queue.asyncAfter(deadline: .now() + .milliseconds(Int(max(1, deadline - now)))) { [weak self] in
            self?.checkDeadline()
        }
    }

    private func checkDeadline() {
        // The deadline may have moved since the timer was set.
        guard state.withLock({ $0.table.deadline }).map({ $0 <= Self.now }) ?? false else { return }
        change { $0.advance(to: $1) }
    }

    private func event(_ change: PeerTable.Change, _ state: inout State) -> PeerEvent? {
        switch change {
        case .found(let found):
            // An interface may have another name by now.
            state.interfaces = [:]
            return peer(found, &state).map { .found($0) }
        case .changed(let found): return peer(found, &state).map { .changed($0) }
        case .gone(let found): return peer(found, &state).map { .gone($0) }
        case .overflow:
            LogDomain.network.log(
                .warning,
                "more than \(PeerTable.maximumPeers) peers are advertised; the others are ignored"
            )
            return nil
        }
    }
}

extension ServiceType {
    /// A type from an app's text.
    static func validated(_ text: String) throws(LoveseatError) -> ServiceType {
        guard let type = ServiceType(text) else {
            throw LoveseatError(
                .invalidParameter,
                "\"\(text)\" is not a service type: use an underscore, a name and ._tcp, such as _myapp._tcp"
            )
        }
        return type
    }

    static func validate(subtypes: [String]) throws(LoveseatError) {
        guard subtypes.count <= 8, subtypes.allSatisfy({ (1...62).contains($0.utf8.count) }) else {
            throw LoveseatError(
                .invalidParameter,
                "a service has at most 8 subtypes, each of 1 to 62 bytes"
            )
        }
    }
}
