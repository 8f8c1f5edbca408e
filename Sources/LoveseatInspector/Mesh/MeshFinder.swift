import LoveseatDiscovery
import LoveseatModel
import Synchronization

/// Searches for peers while a page shows the picture, and for a while after that.
final class MeshFinder: Sendable {
    /// How the inspector searches.
    typealias Search = @Sendable () throws -> PeerBrowser

    private let search: Search
    private let state = Mutex(State())
    private static let patience = Duration.seconds(15)

    private struct State {
        var browser: PeerBrowser?
        var problem: String?
        var asked = ContinuousClock.now
        var timer: Task<Void, Never>?
    }

    init(_ search: @escaping Search) { self.search = search }

    /// The peers that are there. The first call begins the search, so that they appear in later ones; so does a call after a search that
    /// failed or has ended.
    func found() -> (peers: [MeshPicture.Found], problem: String?) {
        let (browser, problem) = state.withLock { state in
            state.asked = .now
            if state.browser == nil {
                do {
                    let browser = try search()
                    (state.browser, state.problem) = (browser, nil)
                    state.timer = Task { [weak self] in await self?.watch(browser) }
                } catch { state.problem = (error as? LoveseatError)?.message ?? "\(error)" }
            }
            return (state.browser, state.problem)
        }
        return (browser?.peers.map(MeshPicture.Found.init) ?? [], problem)
    }

    /// Ends the search.
    func stop() {
        state.withLock { state in
            state.timer?.cancel()
            (state.browser, state.timer) = (nil, nil)
        }
    }

    /// Learns why nothing can be found, and ends the search when no page asks any more.
    private func watch(_ browser: PeerBrowser) async {
        while !Task.isCancelled {
            let problem = await browser.problem?.message
            let isOver = state.withLock { state in
                state.problem = problem
                guard ContinuousClock.now - state.asked > Self.patience else { return false }
                (state.browser, state.timer) = (nil, nil)
                return true
            }
            if isOver { return }
            // The sleep fails when the search ends, as the loop then does.
            try? await Task.sleep(for: .seconds(2))
        }
    }
}

extension MeshPicture.Found {
    fileprivate init(_ peer: DiscoveredPeer) {
        self.init(
            id: peer.id,
            peerID: peer.peerID,
            name: peer.name,
            path: peer.path,
            wire: peer.protocols == ["c"] ? "CouchDB" : "BLIP",
            fingerprintHint: peer.fingerprintHint,
            usesTLS: peer.usesTLS,
            isPairing: peer.isPairing,
            interfaces: peer.interfaces
        )
    }
}
