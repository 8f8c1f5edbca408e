package import LoveseatCore
public import LoveseatModel
import NIOConcurrencyHelpers

/// How a listener makes itself known to other hosts of its network: `ServiceAdvertisement`, of the product LoveseatDiscovery.
///
/// Apps do not conform to this protocol: a listener that is given any other type does not start.
public protocol ListenerAdvertisement: Sendable {}

/// Whether peers can find a listener on its network.
public enum AdvertisementState: Hashable, Sendable {
    /// The listener is not advertised: it does not run, it has no advertisement, or it is not yet known that no other service has the
    /// name.
    case notAdvertised
    /// Peers find the listener under this name, on a host that has this name in the domain `local`.
    case advertised(name: String, host: String)
    /// Peers cannot find the listener at the moment, for example because it listens on a loopback address only. It is advertised as soon
    /// as that is possible.
    case failed(LoveseatError)
}

/// An advertisement that a listener can begin.
package protocol AdvertisementMaker: ListenerAdvertisement {
    /// Begins to advertise a listener that has its port. `report` is called when the state changes.
    ///
    /// - Throws: ``LoveseatError``: `invalidParameter` for a setting that cannot work.
    func begin(
        for listener: AdvertisedListener,
        report: @escaping @Sendable (AdvertisementState) -> Void
    ) throws(LoveseatError) -> any RunningAdvertisement
}

/// The properties of a listener that others may know.
package struct AdvertisedListener: Sendable {
    /// The path of its URLs.
    package var databaseName: String
    /// The name that the database has here.
    package var ownName: String
    /// A random ID that belongs to the database, 32 hexadecimal digits.
    package var databaseID: String
    package var port: UInt16
    /// The SHA-256 fingerprint of its certificate; nil without TLS.
    package var fingerprint: String?
    /// The protocols, such as `b2`, `b3` for BLIP and `c` for CouchDB's.
    package var protocols: [String]
    package var networkInterface: String?

    package init(
        databaseName: String,
        ownName: String,
        databaseID: String,
        port: UInt16,
        fingerprint: String?,
        protocols: [String],
        networkInterface: String?
    ) {
        self.databaseName = databaseName
        self.ownName = ownName
        self.databaseID = databaseID
        self.port = port
        self.fingerprint = fingerprint
        self.protocols = protocols
        self.networkInterface = networkInterface
    }
}

/// An advertisement that goes on until it is withdrawn.
package protocol RunningAdvertisement: Sendable {
    /// Returns when others were told.
    func withdraw() async
}

/// A listener's advertisement while it runs, its state, and the feeds of that.
package final class ListenerAdvertising: Sendable {
    private struct State {
        var current = AdvertisementState.notAdvertised
        var feeds = FeedSet<AdvertisementState>()
        var running: (any RunningAdvertisement)?
        /// Reports of earlier runs do not count.
        var run = 0

        mutating func change(to new: AdvertisementState) {
            if new == current { return }
            current = new
            for feed in feeds.all { feed.push(new) }
        }
    }

    private let state = NIOLockedValueBox(State())

    package init() {}

    /// The name under which the listener is advertised.
    package var name: String? {
        if case .advertised(let name, _) = current { name } else { nil }
    }

    /// The name of the host in the domain `local`.
    package var host: String? {
        if case .advertised(_, let host) = current { host } else { nil }
    }

    private var current: AdvertisementState { state.withLockedValue { $0.current } }

    /// A feed that begins with the current state, and ends when the listener stops.
    package var states: Feed<AdvertisementState> {
        let buffer = FeedBuffer<AdvertisementState>(limit: 32 << 10, cost: { _ in 256 }, merge: { $0 = $1 })
        state.withLockedValue { state in
            buffer.push(state.current)
            state.feeds.insert(buffer)
        }
        return Feed(buffer) { [weak self] in self?.state.withLockedValue { $0.feeds.remove(buffer) } }
    }

    deinit {
        for feed in state.withLockedValue({ $0.feeds.all }) { feed.finish() }
    }

    /// Begins the advertisement of a configuration, if there is one.
    package func begin(
        _ advertisement: (any ListenerAdvertisement)?,
        _ listener: () throws -> AdvertisedListener
    ) throws {
        // A listener is advertised only if its configuration says so.
        guard let advertisement else { return }
        guard let maker = advertisement as? any AdvertisementMaker else {
            throw LoveseatError(
                .invalidParameter,
                "\(type(of: advertisement)) cannot advertise a listener: use ServiceAdvertisement"
            )
        }
        let run = state.withLockedValue { $0.run }
        let running = try maker.begin(for: try listener()) { [weak self] new in
            self?.state.withLockedValue { state in
                if state.run == run { state.change(to: new) }
            }
        }
        state.withLockedValue { $0.running = running }
    }

    /// Ends the advertisement and the feeds; returns when others were told.
    package func end() async {
        let running = state.withLockedValue { state in
            state.run += 1
            state.change(to: .notAdvertised)
            defer { state.running = nil }
            return state.running
        }
        await running?.withdraw()
        for feed in state.withLockedValue({ $0.feeds.removeAll() }) { feed.finish() }
    }
}
