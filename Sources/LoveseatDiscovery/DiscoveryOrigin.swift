private import Dispatch
import Logging
import LoveseatCore
import LoveseatDiscoveryCore
import LoveseatModel
import LoveseatNetwork
import LoveseatReplication
private import Synchronization

/// With what, and on which interfaces, something is searched or published.
struct DiscoveryOrigin: Hashable, Sendable {
    var method: DiscoveryMethod
    /// Nil for all.
    var interfaces: Set<String>?

    private static let hasTold = Atomic(false)
    private static let queue = DispatchQueue(label: "loveseat.discovery", attributes: .concurrent)

    /// The implementation to use, which is asked for off the caller's thread because the system's daemon may be slow.
    func withProvider(_ body: @escaping @Sendable (any DiscoveryProvider) -> Void) {
        Self.queue.async { body(makeProvider()) }
    }

    /// The same for tasks.
    ///
    /// - Throws: `CancellationError`.
    var provider: any DiscoveryProvider {
        get async throws(CancellationError) {
            let provider: (any DiscoveryProvider)? = await unlessCancelled { finish in
                withProvider { _ = finish($0) }
            }
            guard let provider else { throw CancellationError() }
            return provider
        }
    }

    private func makeProvider() -> any DiscoveryProvider {
        #if canImport(dnssd)
        // mDNSResponder cannot be told some of the interfaces.
        if method == .system || (method == .automatic && interfaces == nil) {
            return DNSServiceProvider.shared
        }
        #elseif os(Linux)
        if method == .system { return AvahiProvider.any(makeOwn) }
        // Avahi cannot be told some of the interfaces.
        if method == .automatic, interfaces == nil {
            if let avahi = AvahiProvider.answering(makeOwn) { return avahi }
            if !Self.hasTold.exchange(true, ordering: .relaxed) {
                LogDomain.network.log(
                    .info,
                    "the Avahi daemon does not answer: peers are found and advertised without it"
                )
            }
        }
        #endif
        return makeOwn()
    }

    private func makeOwn() -> MulticastProvider {
        MulticastProvider.shared(interfaces: interfaces) { NetworkMonitor.shared.changes() }
    }

    /// Why nothing can be found or published at the moment; nil if something can, or if the task is cancelled.
    func problem() async -> LoveseatError? {
        // Only a cancelled task gets no provider.
        guard let provider = try? await provider else { return nil }
        #if os(Linux)
        if let avahi = provider as? AvahiProvider {
            guard !avahi.isConnected else { return nil }
            return LoveseatError(
                .unsupported,
                "peers cannot be found: the Avahi daemon does not answer, or avahi-client is not installed"
            )
        }
        #endif
        guard let own = provider as? MulticastProvider, !own.isUsable else { return nil }
        return LoveseatError(
            .unsupported,
            "peers cannot be found: multicast is not possible on any interface, and no system service answers"
        )
    }
}
