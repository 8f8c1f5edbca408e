import Foundation
import Logging
import Loveseat
import Metrics
import ServiceLifecycle

/// The listener to which devices connect: Loveseat and Couchbase Lite, over WebSockets with TLS, with a name and a password.
package struct SyncService: Service {
    package let listener: URLEndpointListener
    private let changes: Feed<ListenerPeer>
    private let failures: Feed<ListenerFailure>
    private let logger: Logger

    // `identities`: where the listener's key is kept.
    package init(
        _ store: OrderStore,
        port: UInt16,
        interface: String?,
        identities: any IdentityStore,
        logger: Logger
    ) {
        var configuration = URLEndpointListenerConfiguration(collections: [store.orders])
        configuration.port = port
        configuration.networkInterface = interface
        configuration.identityStore = identities
        configuration.maximumConnections = 1_000
        configuration.enableDeltaSync = true
        configuration.authenticator = DeviceAuthenticator(store: store)
        configuration.accessPolicy = AccessPolicy { peer, _, order in Self.access(of: peer, to: order, store)
        }
        configuration.incomingFilter = Self.refusal
        listener = URLEndpointListener(configuration)
        (changes, failures) = (listener.peerChanges, listener.failures)
        self.logger = logger
    }

    /// Opens the port, before the server answers its first request.
    func start() async throws {
        try await listener.start()
        for url in listener.urls ?? [] { logger.info("devices connect to \(url)") }
    }

    /// Runs until the server shuts down: then devices are disconnected in good order.
    package func run() async throws {
        await withGracefulShutdownHandler {
            async let refused: Void = measureFailures()
            await measure()
            await refused
        } onGracefulShutdown: {
            Task { await listener.stop() }
        }
    }

    /// Counts connections and documents. The feed ends when the listener has stopped.
    private func measure() async {
        let connected = Meter(label: "workorders_devices_connected")
        let (sent, received) = (
            Counter(label: "workorders_documents_sent"), Counter(label: "workorders_documents_received")
        )
        var peers: [Int: ListenerPeer] = [:]
        for await peer in changes {
            let before = peers[peer.number]
            if before == nil {
                logger.info("device connected", metadata: ["device": "\(peer.identity.username ?? "")"])
            }
            sent.increment(by: Int(peer.documentsSent - (before?.documentsSent ?? 0)))
            received.increment(by: Int(peer.documentsReceived - (before?.documentsReceived ?? 0)))
            peers[peer.number] = peer.status.activity == .stopped ? nil : peer
            connected.set(listener.peers.count)
        }
    }

    /// Counts the documents that were refused, and logs why. A device tries them again when they were changed.
    private func measureFailures() async {
        let counter = Counter(label: "workorders_documents_refused")
        for await failure in failures {
            counter.increment()
            logger.warning("order \(failure.documentID) was refused: \(failure.error.message)")
        }
    }

    /// A device reads the orders that nobody has yet, and reads and changes its own.
    static func access(of peer: PeerIdentity, to order: Document?, _ store: OrderStore) -> DocumentAccess {
        guard let name = peer.username, store.isDevice(name) else { return .none }
        guard let order else { return .write }
        guard let assignee = order["assignee"]?.string else { return .read }
        return ListenerPasswordAuthenticator.isEqual(assignee, name) ? .write : .none
    }

    /// Why an order that a device sends is refused; the device gets the message for that document.
    static func refusal(of peer: PeerIdentity, _ document: Document, _ flags: DocumentFlags) -> LoveseatError?
    {
        if flags.contains(.deleted) { return LoveseatError(.httpForbidden, "only the office deletes orders") }
        let unprocessable = LoveseatError.Code(10_422)
        do {
            let problems = try document.decode(Order.self).problems
            if problems.isEmpty { return nil }
            let text = problems.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(
                separator: "; "
            )
            return LoveseatError(unprocessable, text)
        } catch { return LoveseatError(unprocessable, "this is not a work order: \(error.message)") }
    }
}

/// Knows devices by name and password.
struct DeviceAuthenticator: ListenerAuthenticator {
    let store: OrderStore

    /// A device with the right password is never delayed because of others that guess.
    var hasUnguessableSecrets: Bool { true }

    func authenticate(_ client: ConnectingClient) async -> PeerIdentity? {
        guard let credentials = client.credentials,
            store.isDevice(credentials.username, password: credentials.password)
        else { return nil }
        return PeerIdentity(username: credentials.username, address: client.address)
    }
}
