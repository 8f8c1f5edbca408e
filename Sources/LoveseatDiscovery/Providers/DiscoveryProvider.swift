package import LoveseatDiscoveryCore
package import LoveseatModel
private import Synchronization

/// Which implementation of DNS-SD is used.
public enum DiscoveryMethod: String, Hashable, Sendable, CaseIterable {
    /// The system's daemon where it answers, and Loveseat's own implementation elsewhere.
    case automatic
    /// The system's daemon only: Avahi on Linux, mDNSResponder on Apple's systems.
    case system
    /// Loveseat's own implementation of multicast DNS only.
    case multicast
}

/// An event of a browse.
package enum BrowseReport: Sendable {
    case appeared(ServiceName, Link)
    case disappeared(ServiceName, Link)
    case text(ServiceName, [UInt8])
}

/// How the publication of a service goes on.
package enum PublishReport: Sendable {
    /// The service is published, under this instance name and host name.
    case published(instance: String, host: String)
    /// It cannot be published at the moment.
    case failed(LoveseatError)
}

/// An implementation of DNS-SD. Reports come one after the other, on a queue of the provider.
package protocol DiscoveryProvider: Sendable {
    func browse(
        _ type: ServiceType,
        subtype: String?,
        report: @escaping @Sendable (BrowseReport) -> Void
    ) -> DiscoveryTask
    /// Finds out where a service is reached, until the task is ended.
    func resolve(
        _ service: ServiceName,
        report: @escaping @Sendable ([MulticastNode.Location]) -> Void
    ) -> DiscoveryTask
    func publish(
        _ service: MulticastNode.Service,
        report: @escaping @Sendable (PublishReport) -> Void
    ) -> Publication
    /// Asks whether a service that cannot be reached is still there.
    func reconfirm(_ service: ServiceName)
}

/// The number of something that was begun on a queue.
// @unchecked because it is touched on that queue only.
final class QueueNumber: @unchecked Sendable {
    var value: Int?
}

/// A browse or a resolution, which ends when this is released.
package final class DiscoveryTask: Sendable {
    private let onEnd: @Sendable () -> Void
    package init(onEnd: @escaping @Sendable () -> Void) { self.onEnd = onEnd }
    deinit { onEnd() }
}

/// A service that is published until it is withdrawn.
package final class Publication: Sendable {
    private let onUpdate: @Sendable ([UInt8]) -> Void
    private let onWithdraw: @Sendable (@escaping @Sendable () -> Void) -> Void
    private let isWithdrawn = Atomic(false)

    package init(
        onUpdate: @escaping @Sendable ([UInt8]) -> Void,
        onWithdraw: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
    ) {
        self.onUpdate = onUpdate
        self.onWithdraw = onWithdraw
    }

    /// Changes the TXT record.
    package func update(text: [UInt8]) { onUpdate(text) }

    /// Returns when others were told that the service is gone.
    package func withdraw() async {
        if isWithdrawn.exchange(true, ordering: .relaxed) { return }
        await withCheckedContinuation { continuation in onWithdraw { continuation.resume() } }
    }

    deinit { if !isWithdrawn.load(ordering: .relaxed) { onWithdraw {} } }
}
