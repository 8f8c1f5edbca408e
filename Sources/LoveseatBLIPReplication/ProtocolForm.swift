import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// The form of the protocol that the two sides of a session use, as far as they have agreed on it.
struct ProtocolForm: Sendable {
    /// How messages name the collection that they are about.
    enum Addressing: Hashable {
        /// The peer has not said yet which collections it wants.
        case unknown
        /// They name none: the form of 2.x, which knows the default collection only.
        case defaultOnly
        /// They name its position.
        case positions
    }

    private let ownExtensions: String?
    private let isActive: Bool
    /// The form on which the two sides agreed when the connection began, or which the peer has shown.
    private(set) var negotiated = ReplicationProtocol.mobile3
    /// Whether nothing was negotiated, and the peer has not shown its form. Until then it is taken for one with trees.
    private(set) var isOpen = false
    var addressing = Addressing.unknown
    /// This side's name as an author of versions; nil in a session that names revisions by trees.
    var source: SourceID?
    /// The peer's protocol extensions.
    private(set) var peer = ProtocolExtensions.none
    /// The text by which the peer has named them.
    private var named: String?

    init(extensions: String?, isActive: Bool) { (ownExtensions, self.isActive) = (extensions, isActive) }

    /// How messages name revisions.
    var names: RevisionNaming {
        switch negotiated {
        case .mobile4: .versions
        case .mobile3, .mobile2: .trees
        }
    }

    /// The protocol extensions that this side names; nil for a side that uses none. They are about trees.
    var extensions: String? { names == .trees ? ownExtensions : nil }

    /// The kind of peer, on which the rules for conflicts depend.
    var peerKind: RevisionTree.PeerKind {
        if names == .versions { return .versions }
        if peer.knowsTrees { return .loveseat }
        return isActive ? .hub : .client
    }

    /// Notes the form on which the two sides agreed; nil if the transport negotiates none.
    mutating func agree(on negotiated: ReplicationProtocol?) {
        isOpen = negotiated == nil
        self.negotiated = negotiated ?? .mobile3
    }

    /// Notes how the peer names revisions, where nothing was negotiated.
    mutating func noteNaming(_ names: RevisionNaming) {
        isOpen = false
        if names == .versions { negotiated = .mobile4 }
    }

    /// The number by which messages name a collection; nil if they name none.
    func wireIndex(_ index: Int) -> Int? { addressing == .positions ? index : nil }

    /// The position of the collection that a message names, of a number of collections. Throws if it names none (replication.md §B.1).
    func index(of message: Message, in count: Int) throws(ReplyError) -> Int {
        switch (message.collectionText, addressing) {
        case (nil, .defaultOnly), (nil, .unknown): return 0
        case (nil, .positions), (.some, .defaultOnly), (.some, .unknown):
            throw ReplyError("HTTP", 400, "inappropriate use of the collection property.")
        case (.some(let text), .positions):
            guard let index = Int(text), (0..<count).contains(index) else {
                throw ReplyError("HTTP", 400, "the collection property is out of range.")
            }
            return index
        }
    }

    /// Notes the extensions that the peer names.
    mutating func note(_ text: String?) {
        // A peer may name no extensions, and mostly names the same again. A plain side ignores them.
        guard self.extensions != nil, let text, named?.isExactly(text) != true else { return }
        named = text
        peer = ProtocolExtensions(text) ?? .none
    }
}

extension PullSetup {
    /// The setup of a side that subscribes.
    init(_ plan: ActivePlan, collection: Int, _ form: ProtocolForm, _ tuning: ReplicationTuning) {
        self.init(
            collection: collection,
            wireIndex: form.wireIndex(collection),
            isActive: true,
            tuning: tuning
        )
        autoPurges = plan.autoPurges
        isFiltered = plan.collections[collection].filtersPull
        takesDeltas = plan.usesDeltas
        removesByBody = form.negotiated == .mobile2
        names = form.names
    }

    /// The setup of a side to which the peer pushes.
    init(_ plan: PassivePlan, collection: Int, _ form: ProtocolForm, _ tuning: ReplicationTuning) {
        self.init(
            collection: collection,
            wireIndex: form.wireIndex(collection),
            isActive: false,
            tuning: tuning
        )
        takesDeltas = plan.usesDeltas
        isFiltered = plan.filtersIncoming
        restrictsAccess = plan.restrictsAccess
        extensions = form.extensions
        names = form.names
    }
}

extension PullSession {
    init(
        _ replica: any ReplicaInbox & ReplicaBlobs,
        _ setup: PullSetup,
        since: RemoteSequence? = nil,
        _ form: ProtocolForm
    ) {
        self.init(replica, setup, since: since, peer: form.peerKind)
        incoming.resumesBlobs = form.peer.resumesBlobs
    }
}

extension PushSetup {
    /// The setup of an active side.
    init(_ plan: ActivePlan, collection: Int, _ form: ProtocolForm, _ tuning: ReplicationTuning) {
        self.init(
            collection: collection,
            wireIndex: form.wireIndex(collection),
            mode: .proposing(pulls: plan.pulls),
            isContinuous: plan.isContinuous,
            sendsDeltas: plan.usesDeltas,
            names: form.names,
            extensions: form.extensions,
            tuning: tuning
        )
    }

    /// The setup of a side to which the peer subscribed.
    init(
        _ subscription: SubChangesMessage,
        collection: Int,
        sendsDeltas: Bool,
        _ form: ProtocolForm,
        _ tuning: ReplicationTuning
    ) {
        self.init(
            collection: collection,
            wireIndex: form.wireIndex(collection),
            mode: .announcing(subscription),
            isContinuous: subscription.isContinuous,
            sendsDeltas: sendsDeltas,
            names: form.names,
            extensions: form.extensions,
            tuning: tuning
        )
    }
}

extension PushTarget {
    init(_ form: ProtocolForm) {
        self.init(form.peerKind, takesTreeBlobs: form.peer.takesTreeBlobs)
    }
}

extension SubChangesMessage {
    /// The sequences of this side that the subscriber has.
    var completed: SequenceSet {
        var completed = SequenceSet([0...0])
        completed.insert(0...position)
        return completed
    }

    /// The subscription of a session that pulls a collection.
    init(
        _ plan: ActivePlan,
        collection index: Int,
        since: RemoteSequence?,
        _ form: ProtocolForm,
        _ tuning: ReplicationTuning
    ) {
        self.init(form.names)
        let binding = plan.collections[index]
        collection = form.wireIndex(index)
        self.since = since
        isContinuous = plan.isContinuous
        batch = form.peerKind == .loveseat ? tuning.changesAskedOfLoveseat : tuning.changesAskedFor
        // Other peers leave out deletions that were made while the pull went on. If only the default collection is replicated, the
        // peer's extensions are not known yet.
        let needsNoTombstones = binding.isEmpty && since == nil
        activeOnly = needsNoTombstones && form.peer.announcesLateDeletions
        lateActiveOnly = needsNoTombstones && form.addressing == .defaultOnly && !plan.isPlain
        sendsReplacements = true
        // Over the older protocol revoked documents are announced like any others (gateway.md 32).
        wantsRevocations = form.negotiated != .mobile2
        channels = binding.channels
        documentIDs = binding.documentIDs.map { ListedIDs($0) }
        extensions = form.extensions
    }
}
