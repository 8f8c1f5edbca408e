public import LoveseatCore
public import LoveseatModel
import LoveseatReplication
import NIOConcurrencyHelpers

/// A peer of a listener, and the state of its connection at one moment.
public struct ListenerPeer: Sendable {
    /// A number that distinguishes this connection from the listener's other ones.
    public let number: Int
    /// The peer's identity, as far as it was proved.
    public let identity: PeerIdentity
    /// The state of the connection; ``Replicator/ActivityLevel/stopped`` after it has ended.
    public let status: Replicator.Status
    /// The number of documents that the peer was sent over this connection.
    public let documentsSent: UInt64
    /// The number of documents that the peer sent over this connection.
    public let documentsReceived: UInt64
}

/// A document that a listener could not replicate with a peer.
public struct ListenerFailure: Sendable {
    /// The ``ListenerPeer/number`` of the peer.
    public let peer: Int
    /// The document's collection; nil if it is not known.
    public let collection: CollectionName?
    /// The document's ID.
    public let documentID: String
    /// Whether the peer should have been sent the document; false if the peer sent it.
    public let isPush: Bool
    /// Why the document could not be replicated, such as the error of ``URLEndpointListenerConfiguration/incomingFilter``.
    public let error: LoveseatError
}

/// The connected peers of a listener, and the feeds that observe them.
final class PeerRegistry: Sendable {
    private struct State {
        var nextNumber = 0
        var blobFeeds = FeedSet<BlobTransfer>()
        var feeds = FeedSet<ListenerPeer>()
        var failureFeeds = FeedSet<ListenerFailure>()
        /// The feeds of a listener that stops, which end when its last peer has ended.
        var ending: [FeedBuffer<ListenerPeer>] = []
        var peers = 0
        /// The peers that are connected.
        var connected: [Int: ListenerPeer] = [:]
        /// The replications over their connections.
        var replications: [Int: any Replication] = [:]

        /// The feeds that have ended by now.
        mutating func ended() -> [FeedBuffer<ListenerPeer>] {
            guard peers == 0 else { return [] }
            defer { ending = [] }
            return ending
        }
    }

    private let state = NIOLockedValueBox(State())

    var changes: Feed<ListenerPeer> {
        feed(FeedBuffer(limit: 256 << 10, cost: { _ in 512 }, merge: { $0 = $1 }), in: \.feeds)
    }

    var blobTransfers: Feed<BlobTransfer> { feed(.ofTransfers(), in: \.blobFeeds) }

    /// A consumer that falls behind misses failures.
    var failures: Feed<ListenerFailure> {
        feed(
            FeedBuffer(limit: 256 << 10, cost: { 128 + $0.documentID.utf8.count }, merge: { _, _ in }),
            in: \.failureFeeds
        )
    }

    private func feed<Element>(
        _ buffer: FeedBuffer<Element>,
        in feeds: any WritableKeyPath<State, FeedSet<Element>> & Sendable
    ) -> Feed<Element> {
        state.withLockedValue { $0[keyPath: feeds].insert(buffer) }
        return Feed(buffer) { [weak self] in
            self?.state.withLockedValue { $0[keyPath: feeds].remove(buffer) }
        }
    }

    func transferred(_ transfer: BlobTransfer) {
        for feed in state.withLockedValue({ $0.blobFeeds.all }) { feed.push(transfer) }
    }

    func replicated(_ event: DocumentEvent, over number: Int) {
        // Most documents are replicated without an error.
        guard let error = event.error else { return }
        let failure = ListenerFailure(
            peer: number,
            collection: event.name,
            documentID: event.documentID,
            isPush: event.isPush,
            error: error
        )
        for feed in state.withLockedValue({ $0.failureFeeds.all }) { feed.push(failure) }
    }

    /// The peers that are connected, in the order in which they came.
    var connected: [ListenerPeer] {
        state.withLockedValue { $0.connected.values.sorted { $0.number < $1.number } }
    }

    /// Returns the replication over a peer's connection; nil if that has ended.
    func replication(of number: Int) -> (any Replication)? {
        state.withLockedValue { $0.replications[number] }
    }

    func began(_ replication: any Replication, over number: Int) {
        state.withLockedValue { $0.replications[number] = replication }
    }

    deinit {
        for feed in state.withLockedValue({ $0.ending + $0.feeds.all }) { feed.finish() }
        for feed in state.withLockedValue({ $0.blobFeeds.all }) { feed.finish() }
        for feed in state.withLockedValue({ $0.failureFeeds.all }) { feed.finish() }
    }

    /// Ends the feeds that there are, after the last event of each peer.
    func finish() {
        let (ended, blobFeeds, failureFeeds) = state.withLockedValue { state in
            state.ending += state.feeds.removeAll()
            return (state.ended(), state.blobFeeds.removeAll(), state.failureFeeds.removeAll())
        }
        for feed in ended { feed.finish() }
        for feed in blobFeeds { feed.finish() }
        for feed in failureFeeds { feed.finish() }
    }

    func add(_ identity: PeerIdentity) -> Entry {
        let number = state.withLockedValue { state in
            state.nextNumber += 1
            state.peers += 1
            return state.nextNumber
        }
        let entry = Entry(number: number, identity: identity) { [weak self] in self?.push($0) }
        entry.publish()
        return entry
    }

    private func push(_ peer: ListenerPeer) {
        let (feeds, ended) = state.withLockedValue { state in
            if peer.status.activity == .stopped {
                state.peers -= 1
                state.replications[peer.number] = nil
            }
            state.connected[peer.number] = peer.status.activity == .stopped ? nil : peer
            let feeds = state.ending + state.feeds.all
            return (feeds, state.ended())
        }
        for feed in feeds { feed.push(peer) }
        for feed in ended { feed.finish() }
    }

    /// One peer's entry.
    final class Entry: Sendable {
        private struct Line {
            var status = Replicator.Status.connecting
            var sent: UInt64 = 0
            var received: UInt64 = 0
        }

        let number: Int
        private let identity: PeerIdentity
        private let push: @Sendable (ListenerPeer) -> Void
        private let line = NIOLockedValueBox(Line())

        init(number: Int, identity: PeerIdentity, push: @escaping @Sendable (ListenerPeer) -> Void) {
            self.number = number
            self.identity = identity
            self.push = push
        }

        func update(_ report: ReplicationReport) {
            // Documents and blobs have feeds of their own, and the reason why the session ends comes with the end.
            guard case .activity(let isBusy, let progress) = report else { return }
            line.withLockedValue { line in
                line.status = Replicator.Status(isBusy: isBusy, progress)
                line.sent = progress.documentsPushed
                line.received = progress.documents - progress.documentsPushed
            }
            publish()
        }

        func end(_ error: LoveseatError?) {
            line.withLockedValue { $0.status = $0.status.stopped(error) }
            publish()
        }

        func publish() {
            let line = line.withLockedValue { $0 }
            push(
                ListenerPeer(
                    number: number,
                    identity: identity,
                    status: line.status,
                    documentsSent: line.sent,
                    documentsReceived: line.received
                )
            )
        }
    }
}
