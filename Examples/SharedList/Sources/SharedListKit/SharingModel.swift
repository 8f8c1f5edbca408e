import Foundation
import Loveseat
import Observation

/// Sharing: pairing with other devices by a code, and keeping up with them.
///
/// A device that shows a code listens for the others, which connect to it. A device may do both. Everything continues after a restart:
/// the database stores the paired devices, and the port stays the same.
@MainActor @Observable
package final class SharingModel: ScreenModel {
    /// A device that this one is paired with.
    package struct Device: Identifiable, Hashable, Sendable {
        package enum State: Hashable, Sendable {
            case notConnected
            case syncing
            case upToDate
            /// It cannot be reached at the moment, or not any more, for this reason.
            case failed(String, isRetried: Bool)
        }

        /// The fingerprint of its certificate.
        package let id: String
        package let name: String
        package fileprivate(set) var state = State.notConnected
    }

    package var problem: String?
    package private(set) var devices: [Device] = []
    /// The code that the other device has to enter now.
    package private(set) var code: PairingCode?
    package private(set) var isOnline = false

    private let store: ListStore
    private let identity: TLSIdentity
    private let networkInterface: String?
    private let pairing: ListenerPairingAuthenticator
    private var listener: URLEndpointListener?
    private var starting: Task<URLEndpointListener, any Error>?
    private var replicators: [String: Replicator] = [:]

    /// `networkInterface`: the network interface or address to listen on; nil for all.
    package init(_ store: ListStore, networkInterface: String? = nil) throws {
        self.store = store
        self.networkInterface = networkInterface
        identity = try TLSIdentity.anonymousIdentity(in: store.identities)
        pairing = ListenerPairingAuthenticator(database: store.database)
        try readDevices()
    }

    // MARK: Online and offline

    /// Connects to the paired devices, and listens for those that connect to this one.
    package func goOnline() async {
        isOnline = true
        await attempt {
            for peer in try store.database.pairedPeers() { connect(to: peer) }
            if try store.device.document(id: "this", as: DeviceSettings.self)?.port != nil {
                try await listen()
            }
        }
    }

    /// Ends all connections. Edits go on, and are exchanged later.
    package func goOffline() async {
        (isOnline, code) = (false, nil)
        pairing.withdrawCode()
        let replicators = replicators.values
        self.replicators = [:]
        for replicator in replicators { replicator.stop() }
        for replicator in replicators { await replicator.waitUntilStopped() }
        await listener?.stop()
        listener = nil
        showStates()
    }

    /// Tries now to reach the devices that could not be reached, also those for which trying had ended.
    package func retry() async {
        replicators = replicators.filter { $0.value.status.activity != .stopped }
        for replicator in replicators.values { replicator.resume() }
        await goOnline()
    }

    // MARK: Pairing

    /// Shows a code that one other device can use within two minutes.
    package func showCode() async {
        await attempt {
            if !isOnline { await goOnline() }
            let (code, events) = try pairing.makeCode(for: try await listen())
            self.code = code
            Task { [weak self] in
                for await event in events { self?.show(event, after: code) }
                // A newer code has events of its own.
                if self?.code?.text == code.text { self?.code = nil }
            }
        }
    }

    /// Pairs with the device that shows a code, and stays connected with it.
    ///
    /// - Parameters:
    ///   - code: The text of a QR code, or six digits.
    ///   - url: The URL that the other device shows with the digits.
    package func join(_ code: String, url: String? = nil) async {
        await attempt {
            let typed = try url.map { url in
                guard let parsed = URL(string: url) else {
                    throw LoveseatError(.invalidURL, "\(url) is not a URL: use what the other device shows")
                }
                return try PairingCode(digits: code, url: parsed)
            }
            let peer = try await (typed ?? PairingCode(text: code)).pair(
                with: store.database,
                identity: identity
            )
            isOnline = true
            // It was paired before, perhaps at another address.
            replicators.removeValue(forKey: peer.fingerprint)?.stop()
            connect(to: peer)
        }
    }

    /// Ends sharing with a device. What it has received stays there.
    package func forget(_ id: String) async {
        await attempt {
            try store.database.removePairedPeer(fingerprint: id)
            replicators.removeValue(forKey: id)?.stop()
            try readDevices()
            // A connection that is open stays open until the listener stops.
            if let listener, listener.peers.contains(where: { $0.identity.fingerprint == id }) {
                await listener.stop()
                self.listener = nil
                try await listen()
            }
        }
    }

    private func show(_ event: PairingEvent, after shown: PairingCode) {
        switch event {
        case .paired:
            code = nil
            do { try readDevices() } catch { problem = error.messageForPeople }
        case .replaced(let other):
            // Somebody guessed at the digits.
            if code?.text == shown.text { code = other }
        }
    }

    private func readDevices() throws {
        devices = try store.database.pairedPeers().map { Device(id: $0.fingerprint, name: $0.name) }
        showStates()
    }

    // MARK: Connections

    @discardableResult
    private func listen() async throws -> URLEndpointListener {
        if let listener, listener.port != nil { return listener }
        // Two calls at once start one listener.
        let task = starting ?? Task { try await startListener() }
        starting = task
        defer { starting = nil }
        return try await task.value
    }

    private func startListener() async throws -> URLEndpointListener {
        var settings = try store.device.document(id: "this", as: DeviceSettings.self) ?? DeviceSettings()
        var configuration = URLEndpointListenerConfiguration(collections: [store.lists, store.items])
        configuration.tlsIdentity = identity
        configuration.authenticator = pairing
        configuration.port = settings.port
        configuration.networkInterface = networkInterface
        let listener = URLEndpointListener(configuration)
        let changes = listener.peerChanges
        try await listener.start()
        self.listener = listener
        if settings.port != listener.port {
            settings.port = listener.port
            try store.device.save(settings)
        }
        Task { [weak self] in
            for await _ in changes { self?.showStates() }
        }
        return listener
    }

    private func connect(to peer: PairedPeer) {
        // A device that only connects to this one has no endpoint.
        guard let endpoint = peer.endpoint, replicators[peer.fingerprint] == nil else { return }
        let collections = [store.lists, store.items].map {
            CollectionConfiguration(collection: $0, conflictResolver: KeepBoth())
        }
        var configuration = ReplicatorConfiguration(collections: collections, target: endpoint)
        configuration.trust(peer, identity: identity)
        configuration.continuous = true
        configuration.maxAttemptWaitTime = 30
        // The other person's app is closed now and then.
        configuration.reconnectsAfterGoingAway = true
        let replicator = Replicator(configuration)
        replicators[peer.fingerprint] = replicator
        let documents = replicator.documentReplications
        replicator.start()
        let statuses = replicator.statuses
        Task { [weak self] in
            for await _ in statuses { self?.showStates() }
            self?.showStates()
        }
        Task { [weak self] in
            for await event in documents {
                guard let failed = event.documents.first(where: { $0.error != nil }), let error = failed.error
                else {
                    continue
                }
                self?.problem = "\(event.isPush ? "not sent" : "not received"): \(error.message)"
            }
        }
        do { try readDevices() } catch { problem = error.messageForPeople }
    }

    private func showStates() {
        let all = devices.map { device in
            var device = device
            let incoming = (listener?.peers ?? []).filter { $0.identity.fingerprint == device.id }.map(
                \.status
            )
            let states = ([replicators[device.id]?.status].compactMap(\.self) + incoming).map(
                Device.State.init
            )
            device.state =
                states.first { $0 == .syncing } ?? states.first { $0 == .upToDate } ?? states.first
                ?? .notConnected
            return device
        }
        if all != devices { devices = all }
    }
}

extension SharingModel.Device.State {
    fileprivate init(_ status: Replicator.Status) {
        switch (status.activity, status.error) {
        case (.idle, _): self = .upToDate
        case (.connecting, _), (.busy, _): self = .syncing
        case (.offline, let error?): self = .failed(error.message, isRetried: true)
        case (.stopped, let error?) where error.code == .httpAuthRequired:
            self = .failed("it does not know this device any more: use a new code", isRetried: false)
        case (.stopped, let error?): self = .failed(error.message, isRetried: false)
        case (.offline, nil), (.stopped, nil): self = .notConnected
        }
    }
}

extension SharingModel.Device.State {
    /// The state, for people to read.
    package var text: String {
        switch self {
        case .notConnected: "not connected"
        case .syncing: "syncing"
        case .upToDate: "up to date"
        case .failed(let why, isRetried: true): "\(why); trying again"
        case .failed(let why, isRetried: false): why
        }
    }
}
