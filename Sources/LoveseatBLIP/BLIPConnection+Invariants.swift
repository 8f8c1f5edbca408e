import LoveseatAssertions

/// The conditions that hold between two frames, whatever the peer sends. Builds with `LOVESEAT_CHECKED` check them after each frame, or
/// less often the more messages there are.
extension BLIPConnection {
    func checkInvariants() {
        if !invariantPace.isDue(holding: requests.count + responses.count + awaited.count) { return }
        checkIncoming()
        checkOutgoing()
    }

    private func checkIncoming() {
        invariant(
            incomingBytes == sum { $0.bufferedBytes },
            "\(incomingBytes) bytes are counted of unfinished messages, which have \(sum { $0.bufferedBytes })"
        )
        invariant(
            spilledBytes == sum { $0.spilledBytes },
            "\(spilledBytes) bytes elsewhere are counted of unfinished messages, which have \(sum { $0.spilledBytes })"
        )
        invariant(
            unfinished.count == requests.count && unfinished.allSatisfy { requests[$0] != nil }
                && zip(unfinished, unfinished.dropFirst()).allSatisfy(<),
            "requests \(unfinished) count as unfinished, and \(requests.keys.sorted()) are"
        )
        invariant(
            heldAcknowledgements.keys.allSatisfy { requests[$0] != nil },
            "an acknowledgement is held back of a request that is not here"
        )
        invariant(
            requests.keys.allSatisfy { $0 <= lastIncoming } && awaited.keys.allSatisfy { $0 <= lastRequest },
            "a message is known whose number was not given yet"
        )
        invariant(
            responses.keys.allSatisfy { awaited[$0] != nil },
            "an answer comes to a request that was answered"
        )
    }

    private func sum(_ bytes: (IncomingMessage) -> Int) -> Int {
        requests.values.reduce(0) { $0 + bytes($1) } + responses.values.reduce(0) { $0 + bytes($1) }
    }

    private func check(_ queue: OutgoingQueue) {
        invariant(queue.isSumRight, "\(queue.bytes) bytes are counted of a queue")
        invariant(
            queue.allSatisfy { $0.unacknowledged <= $0.sentBytes },
            "more is unacknowledged of a message than was sent"
        )
    }

    private func checkOutgoing() {
        check(queue)
        check(icebox)
        check(starved)
        invariant(
            icebox.allSatisfy { $0.unacknowledged >= $0.window },
            "a message waits for acknowledgements that has room"
        )
        invariant(
            starved.allSatisfy { $0.pending.isEmpty && !$0.isWhole },
            "a message waits for its body that has some"
        )
    }
}
