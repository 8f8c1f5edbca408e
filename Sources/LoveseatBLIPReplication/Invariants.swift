import LoveseatAssertions
import LoveseatModel
import LoveseatReplication

/// The conditions that hold between two events of a session, whatever the peer does. Builds with `LOVESEAT_CHECKED` check them, less often the
/// more there is to check.
extension ReplicationSession {
    /// How much there is to check.
    ///
    /// Each collection counts its own: an optional of an element that a subscript yields, read in a closure of a mutating function, was
    /// released once too often in optimized builds (Swift 6.2).
    var checkedEntries: Int {
        var entries = 0
        for index in collections.touched { entries += collections[index].checkedEntries }
        return entries
    }

    func checkInvariants() {
        if phase == .over { return }
        for index in collections.touched { collections[index].checkInvariants() }
        collections.checkInvariants()
    }
}

extension CollectionSession {
    fileprivate var checkedEntries: Int {
        @inline(never) get { pull.entries + (push?.entries ?? 0) }
    }

    @inline(never)
    fileprivate func checkInvariants() {
        pull.checkInvariants()
        push?.checkInvariants()
    }
}

extension CollectionSessions {
    fileprivate func checkInvariants() {
        // For many collections, adding up the sum would cost as much as keeping the totals saves.
        if count > 16 { return }
        invariant(sum == total, "the sum of the collections is \(sum), and was kept as \(total)")
    }
}

extension PullSession {
    fileprivate var entries: Int { lists.count + incoming.count + expectations.count }

    fileprivate func checkInvariants() {
        if failure != nil { return }
        lists.checkInvariants()
        invariant(
            insertQueue.bytes
                == insertQueue.keys.reduce(0) { $0 + (incoming[$1]?.revision.contentBytes ?? 0) },
            "\(insertQueue.bytes) bytes are counted of \(insertQueue.keys.count) revisions to be stored"
        )
        incoming.checkInvariants(ready: insertQueue.keys, setup.tuning)
        invariant(
            expectations.isSumRight,
            "\(expectations.bytes) bytes are expected, which is not the sum of what was asked for"
        )
    }
}

extension IncomingRevisions {
    fileprivate func checkInvariants(ready keys: [Int], _ tuning: ReplicationTuning) {
        invariant(
            bytes == entries.values.reduce(0) { $0 + $1.bytes },
            "\(bytes) bytes are counted of \(count) received revisions"
        )
        invariant(
            fetches.count <= tuning.blobsFetching,
            "\(fetches.count) blobs are being fetched"
        )
        // Each revision is in the one place that its stage names.
        let ready = entries.values.count {
            if case .ready = $0.stage { true } else { false }
        }
        invariant(
            ready == keys.count
                && keys.allSatisfy {
                    if case .ready = entries[$0]?.stage { true } else { false }
                },
            "\(ready) revisions are complete, and \(keys) are to be stored"
        )
        invariant(
            fetches.values.allSatisfy { entries[$0]?.missing.isEmpty == false },
            "a blob is being fetched for a revision that lacks none"
        )
        let waiting =
            waitingForTurn.count + waitingForBlob.values.reduce(0) { $0 + $1.count }
        invariant(
            ready + fetches.count + waiting == count,
            "of \(count) revisions \(ready) are complete, \(fetches.count) get blobs, \(waiting) wait"
        )
    }
}

extension PushSession {
    private static func isOffered(_ document: Outgoing) -> Bool {
        if case .offered = document.stage { true } else { false }
    }

    fileprivate var entries: Int { documents.count + sent.inFlight.count }

    fileprivate func checkInvariants() {
        if failure != nil { return }
        let unanswered = sent.inFlight.values.reduce(0) { sum, document in
            if case .sent(_, let parcel) = document.stage { sum + parcel.bytes } else { .min }
        }
        invariant(
            sent.unansweredBytes == unanswered,
            "\(sent.unansweredBytes) bytes are counted of \(sent.inFlight.count) revisions without an answer"
        )
        invariant(
            sent.transmittingBytes == sent.transmitting.values.reduce(0, +)
                && sent.transmitting.keys.allSatisfy { sent.inFlight[$0] != nil },
            "\(sent.transmittingBytes) bytes are counted of \(sent.transmitting.count) revisions in transmission"
        )
        invariant(
            queue.allSatisfy { if case .wanted = $0.stage { true } else { false } },
            "a revision is to be sent that the peer does not want"
        )
        invariant(
            waiting.allSatisfy(Self.isOffered)
                && lists.documents.values.allSatisfy { $0.allSatisfy(Self.isOffered) },
            "a document is offered whose revision is elsewhere"
        )
        invariant(
            forbidden.allSatisfy { if case .forbidden = $0.stage { true } else { false } },
            "a document waits for another try that was not forbidden"
        )
        invariant(
            !isProposing || sent.inFlight.values.allSatisfy { documents[ExactText($0.id)] === $0 },
            "a revision is on its way of a document that is done with"
        )
        invariant(
            sent.inFlight.values.allSatisfy { !feed.completed.contains($0.change.sequence) } || !isProposing,
            "a sequence counts as done whose revision is not answered"
        )
    }
}
