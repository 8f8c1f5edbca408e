import LoveseatDiscoveryCore

extension FuzzTargets {
    /// A datagram of multicast DNS, which comes from a hostile host: it is read or refused, means the same when it is written again, and
    /// leaves a node that publishes and searches at work.
    public static func discovery(_ bytes: [UInt8]) {
        if let message = try? DNSMessage(bytes), !message.isTruncated {
            let written = message.encoded(limit: .max)
            let again = written.first.flatMap { try? DNSMessage($0) } ?? DNSMessage()
            precondition(again.questions == message.questions, "the questions of a message change")
            precondition(again.answers == message.answers, "the answers of a message change")
        }
        _ = ServiceText(bytes: bytes).bytes
        let link = Link(interface: 1, isIPv6: false)
        let address = LinkInterface.Address(bytes: [10, 0, 0, 1], prefixLength: 8)
        var node = MulticastNode(hostLabel: "lv-1") { 7 }
        node.setInterfaces([LinkInterface(index: 1, name: "lv0", addresses: [address])], at: 0)
        _ = node.browse(.loveseat, at: 0)
        _ = node.resolve(ServiceName(instance: "trips", type: .loveseat), at: 0)
        _ = node.publish(.init(instance: "trips", type: .loveseat, port: 1, text: [0]), at: 0)
        var table = PeerTable()
        func advance(to end: Int64) {
            // A node that is never done would spin here.
            for _ in 0..<1_000 {
                // The node waits for something later, or for nothing.
                guard let deadline = node.deadline, deadline <= end else { return }
                node.advance(to: deadline)
            }
            preconditionFailure("a node has always something to do at once")
        }
        advance(to: 10_000)
        for port in [MulticastNode.port, 40_000] {
            node.receive(
                IncomingDatagram(bytes: bytes, source: [10, 0, 0, 2], port: port, link: link),
                at: 10_000
            )
            advance(to: 20_000)
        }
        for case .event(let event) in node.drainEffects() {
            switch event {
            case .appeared(_, let service, let link): _ = table.appeared(service, link, at: 10_000)
            case .text(_, let service, let text): _ = table.text(text, of: service, at: 10_000)
            case .published, .disappeared, .resolved: break
            }
        }
        _ = table.advance(to: 100_000)
    }
}
