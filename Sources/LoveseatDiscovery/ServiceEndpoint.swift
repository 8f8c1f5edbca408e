import Foundation
import LoveseatBLIPReplication
public import LoveseatCore
import LoveseatDiscoveryCore
import LoveseatIdentity
package import LoveseatModel
import LoveseatNetwork
import LoveseatReplication

/// A peer that is found by its name or ID, anew at each attempt to connect.
///
/// ```swift
/// var configuration = ReplicatorConfiguration(collections: [sights], target: ServiceEndpoint(name: "Ana's trips"))
/// configuration.trust(peer, identity: identity)
/// ```
///
/// The configuration has to pin the peer's certificate, or to name the authorities that issue it, because anybody on the network can
/// use the name; see ``trustOnFirstUse`` and ``allowsUnpinned``. A peer that is not there is waited for, as one that cannot be reached.
public struct ServiceEndpoint: BLIPEndpoint {
    private enum Target: Hashable {
        case name(String)
        case id(String)
    }

    private let target: Target
    private let type: String
    private let method: DiscoveryMethod
    private let interfaces: Set<String>?

    /// The name of the peer's database. Nil, the default, means the one that the peer advertises.
    public var databaseName: String?
    /// Asks whether to trust a peer for which nothing is pinned, and remembers its certificate. Nil, the default, means that such a peer is
    /// not connected to.
    public var trustOnFirstUse: TrustOnFirstUse?
    /// Whether to connect with `ReplicatorConfiguration.acceptOnlySelfSignedServerCertificate`, which accepts the certificate of anybody
    /// who takes the peer's name. The default is false.
    public var allowsUnpinned = false
    /// Whether to connect without TLS to a peer that does not offer it, unless a certificate is pinned or ``trustOnFirstUse`` is set. The
    /// default is false. Others on the network can read everything then, and pretend to be the peer.
    public var allowsInsecure = false
    /// Whether to connect to ports below 1,024. The default is false, so that nobody leads connections to other services.
    public var allowsPrivilegedPorts = false
    /// How long to search at each attempt. The default is 5 seconds.
    public var timeout = Duration.seconds(5)

    /// Creates an endpoint of a service.
    ///
    /// Checkpoints belong to the name: if another peer takes it, all documents are compared again.
    ///
    /// - Parameters:
    ///   - name: The name of the service. It has to be equal.
    ///   - type: The type of service.
    ///   - method: The implementation to use.
    ///   - interfaces: The names of the only interfaces to search on; nil for all. See ``PeerBrowser``.
    public init(
        name: String,
        type: String = "_loveseat._tcp",
        method: DiscoveryMethod = .automatic,
        interfaces: Set<String>? = nil
    ) {
        (target, self.type, self.method, self.interfaces) = (.name(name), type, method, interfaces)
    }

    /// Creates an endpoint of the peer with a ``DiscoveredPeer/peerID``, whatever its name is.
    ///
    /// Checkpoints belong to the ID, so that nothing starts anew when the peer's name or address changes.
    public init(
        peerID: String,
        type: String = "_loveseat._tcp",
        method: DiscoveryMethod = .automatic,
        interfaces: Set<String>? = nil
    ) {
        (target, self.type, self.method, self.interfaces) = (
            .id(peerID.lowercased()), type, method, interfaces
        )
    }

    /// Creates an endpoint of a peer that was found: by its ID, or by its name if it has none.
    public init(_ peer: DiscoveredPeer) {
        target = peer.peerID.map { .id($0) } ?? .name(peer.found.services.first?.instance ?? "")
        type = peer.type
        method = peer.origin.method
        interfaces = peer.origin.interfaces
    }

    private var origin: DiscoveryOrigin { DiscoveryOrigin(method: method, interfaces: interfaces) }

    private var title: String {
        switch target {
        case .name(let name): name
        case .id(let id): id
        }
    }

    package var remoteName: String {
        let database = databaseName.map { "/\($0)" } ?? ""
        return switch target {
        case .id(let id): "peer:\(id)\(database)"
        case .name(let name): "dns-sd:\(name).\(type.lowercased())\(database)"
        }
    }

    package func validate() throws(LoveseatError) {
        _ = try ServiceType.validated(type)
        guard !title.isEmpty else { throw LoveseatError(.invalidParameter, "the name of the peer is empty") }
        guard timeout > .zero else {
            throw LoveseatError(.invalidParameter, "the timeout of the search has to be more than 0")
        }
    }

    package func networkChanges() -> AsyncStream<Void>? {
        let (stream, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let network = Task { for await _ in NetworkMonitor.shared.changes() { continuation.yield() } }
        let browsing = Task { [self] in
            // A replicator with a type that is not valid stops before it waits for the network.
            guard let browser = try? PeerBrowser(type: type, method: method, interfaces: interfaces) else {
                return
            }
            // The peer was not reached though it was there: wait for a change.
            var isFirst = true
            for await event in browser {
                switch event {
                case .found(let peer), .changed(let peer):
                    if matches(peer), !isFirst { continuation.yield() }
                    if matches(peer) { isFirst = false }
                case .gone(let peer): if matches(peer) { isFirst = false }
                }
            }
        }
        continuation.onTermination = { _ in
            network.cancel()
            browsing.cancel()
        }
        return stream
    }

    private func matches(_ peer: DiscoveredPeer) -> Bool {
        // A listener of CouchDB's wire has the same ID.
        switch target {
        case .id(let id): peer.peerID.isExactly(id) && peer.protocols != ["c"]
        case .name(let name): peer.found.services.contains { $0.instance.isExactly(name) }
        }
    }

    // MARK: Connecting

    package func connect(_ options: ConnectionOptions) async throws -> PeerConnection {
        guard options.proxy == nil else {
            throw LoveseatError(
                .invalidParameter,
                "a peer on this network cannot be reached through a proxy: remove the proxy, or use a URL"
            )
        }
        let isPinned = options.pinnedServerCertificate != nil || options.pinnedServerFingerprint != nil
        let isTrusted =
            isPinned || options.rootCertificates != nil || (allowsUnpinned && options.acceptsOnlySelfSigned)
        guard isTrusted || allowsInsecure || trustOnFirstUse != nil else {
            throw LoveseatError(
                .tlsCertUnknownRoot,
                "anybody can advertise \"\(title)\": pair with the peer, or pin its certificate"
            )
        }
        let services = try await services()
        let addresses = try await Resolver(origin: origin).addresses(
            of: services,
            timeout: timeout,
            name: title
        )
        do {
            var options = options
            if !isTrusted, let trustOnFirstUse, let service = services.first {
                options.acceptsOnlySelfSigned = false
                options.pinnedServerFingerprint = try await pin(trustOnFirstUse, service, addresses, options)
            }
            return try await race(try candidates(addresses, options)) { [options] in
                try await WebSocketClient(options: options).connect(to: $0)
            } discard: {
                await $0.channel.close(code: 1001, reason: "")
            }
        } catch {
            // It may be gone without a goodbye.
            // Only a cancelled task gets no provider.
            if let provider = try? await origin.provider {
                for service in services { provider.reconfirm(service) }
            }
            throw error
        }
    }

    /// The certificate to accept of a peer for which none is pinned.
    private func pin(
        _ rule: TrustOnFirstUse,
        _ service: ServiceName,
        _ addresses: [PeerAddress],
        _ options: ConnectionOptions
    ) async throws -> String {
        var probing = ConnectionOptions()
        probing.acceptsAnyCertificate = true
        let isByID = if case .id = target { true } else { false }
        return try await rule.pin(
            service,
            peerID: addresses.first?.text["id"]?.lowercased(),
            prefersID: isByID
        ) { [probing] in
            let bytes = try await race(try candidates(addresses, options)) { address in
                try await ServerProbe.certificate(host: address.host, port: address.port, probing)
            } discard: { _ in
            }
            return try TLSCertificate(der: bytes)
        }
    }

    /// The addresses to connect to.
    ///
    /// - Throws: why none can be connected to.
    private func candidates(_ addresses: [PeerAddress], _ options: ConnectionOptions) throws
        -> [WebSocketAddress]
    {
        var problem: LoveseatError?
        let candidates = addresses.compactMap { address in
            do throws(LoveseatError) { return try candidate(address, options) } catch {
                problem = problem ?? error
                return nil
            }
        }
        if candidates.isEmpty, let problem { throw problem }
        return candidates
    }

    /// The services of the peer.
    private func services() async throws -> [ServiceName] {
        switch target {
        case .name(let name): return [ServiceName(instance: name, type: try ServiceType.validated(type))]
        case .id:
            let browser = try PeerBrowser(type: type, method: method, interfaces: interfaces)
            let search = Task {
                for await event in browser {
                    switch event {
                    case .found(let peer), .changed(let peer): if matches(peer) { return peer.found.services }
                    case .gone: break
                    }
                }
                return []
            }
            let deadline = Task {
                try await Task.sleep(for: timeout)
                search.cancel()
            }
            defer { deadline.cancel() }
            let services = await withTaskCancellationHandler {
                await search.value
            } onCancel: {
                search.cancel()
            }
            guard services.isEmpty else { return services }
            try Task.checkCancellation()
            throw LoveseatError(
                .timeout,
                "the peer \(title) is not on this network: is its device awake, and does its app run?"
            )
        }
    }

    /// The address to connect to, or why it must not be connected to.
    private func candidate(_ address: PeerAddress, _ options: ConnectionOptions) throws(LoveseatError)
        -> WebSocketAddress
    {
        guard allowsPrivilegedPorts || address.port >= Resolver.firstOrdinaryPort else {
            throw LoveseatError(
                .invalidParameter,
                "\"\(title)\" advertises port \(address.port), and ports below 1024 are not connected to"
            )
        }
        guard address.text["v"] != "c" else {
            throw LoveseatError(
                .unsupported,
                "\"\(title)\" speaks CouchDB's protocol: resolve the peer, and use an endpoint for that"
            )
        }
        let pin = options.pinnedServerCertificate?.fingerprint ?? options.pinnedServerFingerprint
        if let pin, let hint = address.text["fp"]?.lowercased(), !pin.hasPrefix(hint) {
            throw LoveseatError(
                .tlsCertUntrusted,
                "\"\(title)\" is advertised with another certificate than the pinned one: somebody pretends to be the peer, or it has a new identity; pair again if it has"
            )
        }
        let isInsecure =
            allowsInsecure && trustOnFirstUse == nil && pin == nil && options.rootCertificates == nil
            && address.text["tls"] != "1"
        let path = databaseName ?? address.text["path"].map { String($0.drop { $0 == "/" }) } ?? ""
        guard let encoded = path.addingPercentEncoding(withAllowedCharacters: .urlPathAllowed),
            !encoded.isEmpty
        else {
            throw LoveseatError(
                .invalidURL,
                "\"\(title)\" does not say which database it serves: set databaseName"
            )
        }
        return WebSocketAddress(
            host: address.address,
            port: Int(address.port),
            isSecure: !isInsecure,
            target: "/\(encoded)/_blipsync"
        )
    }

    /// Between the starts of two attempts (RFC 8305).
    private static let stagger = Duration.milliseconds(250)

    /// Tries one address after the other; the first that succeeds wins. `discard` ends what succeeds after it.
    private func race<Outcome: Sendable>(
        _ candidates: [WebSocketAddress],
        attempt: @escaping @Sendable (WebSocketAddress) async throws -> Outcome,
        discard: (Outcome) async -> Void
    ) async throws -> Outcome {
        try await withThrowingTaskGroup(of: Result<Outcome, any Error>?.self) { group in
            var waiting = candidates[...]
            var running = 0
            var failure: (any Error)?
            func startNext() {
                // All addresses are being tried, or have failed.
                guard let next = waiting.popFirst() else { return }
                running += 1
                group.addTask {
                    do {
                        return .success(try await attempt(next))
                    } catch {
                        return .failure(error)
                    }
                }
                group.addTask {
                    // The group is cancelled when an address is connected to, or when the caller's task is.
                    try? await Task.sleep(for: Self.stagger)
                    return nil
                }
            }
            startNext()
            var winner: Outcome?
            while let result = try await group.next() {
                switch result {
                case nil: if winner == nil { startNext() }
                case .success(let outcome):
                    running -= 1
                    if winner == nil {
                        winner = outcome
                        group.cancelAll()
                    } else {
                        await discard(outcome)
                    }
                case .failure(let error):
                    running -= 1
                    // A refusal says more than a connection that was not possible.
                    if failure == nil || (failure as? LoveseatError)?.isNetworkDependent == true {
                        failure = error
                    }
                    if winner == nil, running == 0, waiting.isEmpty { group.cancelAll() }
                    if winner == nil { startNext() }
                }
            }
            if let winner { return winner }
            try Task.checkCancellation()
            throw failure ?? LoveseatError(.timeout, "\"\(title)\" has no address that can be connected to")
        }
    }
}
