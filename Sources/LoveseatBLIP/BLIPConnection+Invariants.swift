import LoveseatAssertions

/// The conditions that hold between two frames, whatever the peer sends. Builds with `LOVESEAT_CHECKED` check them after each frame, or
/// less often the more messages there are.
extension BLIPConnection {
    func checkInvariants() {
        if !invariantPace.isDue(holding: incoming.count + answers.awaited.count) { return }
        checkIncoming()
        checkOutgoing()
    }

    private func checkIncoming() {
        invariant(
            incoming.bufferedBytes == sum { $0.bufferedBytes },
            "\(incoming.bufferedBytes) bytes are counted of unfinished messages, which have \(sum { $0.bufferedBytes })"
        )
        invariant(
            incoming.spilledBytes == sum { $0.spilledBytes },
            "\(incoming.spilledBytes) bytes elsewhere are counted of unfinished messages, which have \(sum { $0.spilledBytes })"
        )
        invariant(
            incoming.order.count == incoming.requests.count
                && incoming.order.allSatisfy { incoming.requests[$0] != nil }
                && zip(incoming.order, incoming.order.dropFirst()).allSatisfy(<),
            "requests \(incoming.order) count as unfinished, and \(incoming.requests.keys.sorted()) are"
        )
        invariant(
            incoming.heldAcknowledgements.keys.allSatisfy { incoming.requests[$0] != nil },
            "an acknowledgement is held back of a request that is not here"
        )
        invariant(
            incoming.requests.keys.allSatisfy { $0 <= incoming.lastRequest }
                && answers.awaited.keys.allSatisfy { $0 <= answers.lastRequest },
            "a message is known whose number was not given yet"
        )
        invariant(
            incoming.responses.keys.allSatisfy { answers.awaited[$0] != nil },
            "an answer comes to a request that was answered"
        )
    }

    private func sum(_ bytes: (IncomingMessage) -> Int) -> Int {
        incoming.requests.values.reduce(0) { $0 + bytes($1) }
            + incoming.responses.values.reduce(0) { $0 + bytes($1) }
    }

    private func check(_ queue: OutgoingQueue) {
        invariant(queue.isSumRight, "\(queue.bytes) bytes are counted of a queue")
        invariant(
            queue.allSatisfy { $0.unacknowledged <= $0.sentBytes },
            "more is unacknowledged of a message than was sent"
        )
    }

    private func checkOutgoing() {
        check(outgoing.queue)
        check(outgoing.icebox)
        check(outgoing.starved)
        invariant(
            outgoing.icebox.allSatisfy { $0.unacknowledged >= $0.window },
            "a message waits for acknowledgements that has room"
        )
        invariant(
            outgoing.starved.allSatisfy { $0.pending.isEmpty && !$0.isWhole },
            "a message waits for its body that has some"
        )
    }
}
