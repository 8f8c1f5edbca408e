import Loveseat

/// Prints a line on standard error when a peer of `serve` connects, becomes idle, or disconnects.
enum PeerLines {
    /// Prints until the task is cancelled.
    static func print(_ changes: Feed<ListenerPeer>) async {
        var last: [Int: String] = [:]
        for await peer in changes {
            // States in between are logged with --verbose.
            guard peer.status.activity != .busy else { continue }
            let line = text(peer)
            if peer.status.activity == .stopped {
                last[peer.number] = nil
            } else if last.updateValue(line, forKey: peer.number) == line {
                continue
            }
            Output.remark("loveseat: \(line)")
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
            default: lag == 0 ? "up to date" : "\(lag.counted("byte")) behind"
            }
        // That the peer has disconnected was printed already.
        let error = peer.status.error?.code == .webSocketGoingAway ? nil : peer.status.error
        let why = error.map { ": \($0.message)" } ?? ""
        return
            "peer \(peer.number) \(who) · \(what) · \(peer.documentsSent) sent, \(peer.documentsReceived) received\(why)"
    }
}
