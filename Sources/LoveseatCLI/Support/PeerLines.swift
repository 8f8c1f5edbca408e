import Loveseat

/// Prints a line on standard error when a peer of `serve` connects, is up to date, or disconnects, and for documents that cannot be
/// replicated with it.
actor PeerLines {
    /// How long a peer has to be idle before it counts as up to date: between two batches of a push, it is idle, too.
    private static let patience = Duration.seconds(1)
    /// The maximum number of documents of a connection that are named.
    private static let maximumFailures = 20

    private var last: [Int: String] = [:]
    private var waiting: [Int: Task<Void, Never>] = [:]
    /// The documents that were named.
    private var failures: [Int: Swift.Set<ExactText>] = [:]

    /// Prints until the task is cancelled. The feeds are those of a listener that has not started.
    static func print(_ changes: Feed<ListenerPeer>, _ failures: Feed<ListenerFailure>) async {
        let lines = PeerLines()
        async let failed: Void = {
            for await failure in failures { await lines.show(failure) }
        }()
        for await peer in changes { await lines.show(peer) }
        await failed
    }

    private func show(_ peer: ListenerPeer) {
        let number = peer.number
        waiting.removeValue(forKey: number)?.cancel()
        let line = Self.text(peer)
        switch peer.status.activity {
        // States in between are logged with --verbose.
        case .busy: break
        case .stopped:
            last[number] = nil
            failures[number] = nil
            Output.remark("loveseat: \(line)")
        case .idle where peer.status.progress.total == peer.status.progress.completed:
            waiting[number] = Task {
                // The sleep fails when the peer has changed in the meantime, which cancels it.
                guard (try? await Task.sleep(for: Self.patience)) != nil else { return }
                show(line, of: number)
            }
        case .idle, .offline, .connecting: show(line, of: number)
        }
    }

    private func show(_ line: String, of number: Int) {
        if last.updateValue(line, forKey: number) != line { Output.remark("loveseat: \(line)") }
    }

    private func show(_ failure: ListenerFailure) {
        // A peer may try again what is refused.
        guard failures[failure.peer, default: []].count < Self.maximumFailures,
            failures[failure.peer, default: []].insert(ExactText(failure.documentID)).inserted
        else { return }
        let what = failure.isPush ? "could not be sent" : "was not stored"
        let message = "\(failure.documentID) \(what): \(failure.error.message)".printable
        Output.remark("loveseat: peer \(failure.peer) · \(message)")
        if failures[failure.peer]?.count == Self.maximumFailures {
            Output.remark(
                "loveseat: peer \(failure.peer) · no more of its documents are named here: see `loveseat top --pending`"
            )
        }
    }

    private static func text(_ peer: ListenerPeer) -> String {
        let identity = peer.identity
        let name = identity.username ?? identity.certificates.first?.commonName
        let who = [name, identity.address.isEmpty ? nil : identity.address].compactMap { $0 }
            .joined(separator: "@")
        let lag = peer.status.progress.total - peer.status.progress.completed
        let what =
            switch peer.status.activity {
            case .connecting: "connected"
            case .stopped: "gone"
            case .idle, .busy, .offline: lag == 0 ? "up to date" : "\(lag.counted("byte")) behind"
            }
        // That the peer has disconnected was printed already.
        let error = peer.status.error?.code == .webSocketGoingAway ? nil : peer.status.error
        let why = error.map { ": \($0.message)" } ?? ""
        return
            "peer \(peer.number) \(who) · \(what) · \(peer.documentsSent) sent, \(peer.documentsReceived) received\(why)"
    }
}
