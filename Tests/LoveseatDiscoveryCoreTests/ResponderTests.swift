import LoveseatDiscoveryCore
import Testing

@Suite("Answers to questions")
struct ResponderTests {
    private let type = DomainName("_loveseat._tcp.local") ?? ServiceType.loveseat.domainName

    /// A node with a published service, and the answers to one datagram within a time.
    private func answers(
        to message: DNSMessage,
        from source: [UInt8] = [169, 254, 9, 9],
        port: UInt16 = MulticastNode.port,
        after wait: Int64 = 60_000,
        within time: Int64 = 1_000
    ) -> [(effect: MulticastNode.Effect, message: DNSMessage)] {
        var node = MulticastNode(hostLabel: "lv-1") { 7 }
        node.setInterfaces([SimulatedNetwork.interface([169, 254, 0, 1])], at: 0)
        let service = MulticastNode.Service(
            instance: "trips",
            type: .loveseat,
            subtypes: ["_blue"],
            port: 4_984,
            text: [0]
        )
        _ = node.publish(service, at: 0)
        while let deadline = node.deadline, deadline <= wait { node.advance(to: deadline) }
        _ = node.drainEffects()
        let bytes = message.encoded(limit: 9_000).first ?? []
        node.receive(
            IncomingDatagram(bytes: bytes, source: source, port: port, link: SimulatedNetwork.link),
            at: wait
        )
        while let deadline = node.deadline, deadline <= wait + time { node.advance(to: deadline) }
        return node.drainEffects().compactMap { effect in
            switch effect {
            case .multicast(let bytes, _), .unicast(let bytes, _, _, _):
                (try? DNSMessage(bytes)).map { (effect, $0) }
            case .event: nil
            }
        }
    }

    private func question(_ name: DomainName?, _ type: UInt16, unicast: Bool = false) -> DNSMessage {
        var message = DNSMessage()
        if let name { message.questions = [DNSQuestion(name, type, wantsUnicast: unicast)] }
        return message
    }

    private var instance: DomainName? { ServiceName(instance: "trips", type: .loveseat).domainName }

    @Test("The type is answered with PTR, and SRV, TXT and addresses beside it")
    func type_() throws {
        let answer = try #require(answers(to: question(type, DNSType.ptr)).first?.message)
        #expect(answer.answers.map(\.data.type) == [DNSType.ptr])
        #expect(Set(answer.additionals.map(\.data.type)) == [DNSType.srv, DNSType.txt, DNSType.a])
    }

    @Test("Subtypes and the list of types are answered")
    func subtypes() throws {
        for name in ["_blue._sub._loveseat._tcp.local", "_services._dns-sd._udp.local"] {
            let answer = try #require(answers(to: question(DomainName(name), DNSType.ptr)).first?.message)
            #expect(answer.answers.map(\.name) == [try #require(DomainName(name))])
        }
        #expect(answers(to: question(DomainName("_red._sub._loveseat._tcp.local"), DNSType.ptr)).isEmpty)
    }

    @Test("Names are compared without regard to case")
    func cases() {
        #expect(answers(to: question(DomainName("_LoveSeat._TCP.Local"), DNSType.ptr)).count == 1)
    }

    @Test("A type that a name of ours has not is answered with NSEC")
    func absence() throws {
        let answer = try #require(answers(to: question(instance, DNSType.a)).first?.message)
        #expect(answer.answers.map(\.data.type) == [DNSType.nsec])
    }

    @Test("A known answer with at least half of its time to live is not repeated")
    func knownAnswers() throws {
        var message = question(type, DNSType.ptr)
        let name = try #require(instance)
        message.answers = [DNSRecord(try #require(type), .ptr(name), ttl: 2_250, isUnique: false)]
        #expect(answers(to: message).isEmpty)
        message.answers[0].ttl = 2_249
        #expect(answers(to: message).count == 1)
    }

    @Test("Known answers that follow in another datagram are waited for")
    func truncated() {
        var bytes = question(type, DNSType.ptr).encoded(limit: 9_000)[0]
        bytes[2] |= 2
        let message = (try? DNSMessage(bytes)) ?? DNSMessage()
        #expect(message.isTruncated)
        var node = MulticastNode(hostLabel: "lv-1") { 7 }
        node.setInterfaces([SimulatedNetwork.interface([169, 254, 0, 1])], at: 0)
        _ = node.publish(.init(instance: "trips", type: .loveseat, port: 1, text: [0]), at: 0)
        while let deadline = node.deadline { node.advance(to: deadline) }
        _ = node.drainEffects()
        func receive(_ bytes: [UInt8], at time: Int64) {
            let source: [UInt8] = [169, 254, 9, 9]
            node.receive(
                IncomingDatagram(
                    bytes: bytes,
                    source: source,
                    port: MulticastNode.port,
                    link: SimulatedNetwork.link
                ),
                at: time
            )
        }
        receive(bytes, at: 60_000)
        #expect(node.deadline.map { (60_400...60_500).contains($0) } == true)
        var known = DNSMessage()
        if let type, let instance {
            known.answers = [DNSRecord(type, .ptr(instance), ttl: 4_000, isUnique: false)]
        }
        receive(known.encoded(limit: 9_000)[0], at: 60_100)
        node.advance(to: 60_600)
        #expect(node.drainEffects().isEmpty)
    }

    @Test(
        "A question with the QU bit is answered to the asking host alone, if the record was sent to all lately"
    )
    func unicast() throws {
        let lately = answers(to: question(instance, DNSType.srv, unicast: true), after: 10_000)
        guard case .unicast(_, let address, let port, _)? = lately.first?.effect else {
            Issue.record("not unicast")
            return
        }
        #expect(address == [169, 254, 9, 9])
        #expect(port == MulticastNode.port)
        let later = answers(to: question(instance, DNSType.srv, unicast: true), after: 60_000)
        guard case .multicast? = later.first?.effect else {
            Issue.record("not multicast")
            return
        }
    }

    @Test(
        "A resolver at another port gets its question and ID back, short times to live, and no cache-flush bits"
    )
    func legacy() throws {
        var message = question(instance, DNSType.srv)
        message.id = 0x1234
        let found = answers(to: message, port: 40_000)
        guard case .unicast(_, _, 40_000, _)? = found.first?.effect, let reply = found.first?.message else {
            Issue.record("not answered")
            return
        }
        #expect(reply.id == 0x1234)
        #expect(reply.questions.map(\.type) == [DNSType.srv])
        let records = reply.answers + reply.additionals
        #expect(!records.isEmpty)
        #expect(records.allSatisfy { $0.ttl <= 10 && !$0.isUnique })
    }

    @Test("A resolver at another port gets its answer in one short datagram, whatever else it asks")
    func legacyWithManyQuestions() throws {
        var message = DNSMessage()
        for number in 0..<30 {
            let label = [UInt8](repeating: UInt8(0x61 + number % 26), count: 60)
            let name = try #require(DomainName(labels: [Array("\(number)".utf8), label, label, label]))
            message.questions.append(DNSQuestion(name, DNSType.a))
        }
        message.questions.append(DNSQuestion(try #require(instance), DNSType.srv))
        let found = answers(to: message, port: 40_000)
        #expect(found.count == 1)
        guard case .unicast(let bytes, _, 40_000, _)? = found.first?.effect, let reply = found.first?.message
        else {
            Issue.record("not answered")
            return
        }
        #expect(bytes.count <= 1_440)
        #expect(reply.questions.map(\.name) == [try #require(instance)])
        #expect(reply.answers.map(\.data.type) == [DNSType.srv])
        #expect(message.encoded(limit: 1_440).allSatisfy { $0.count <= 1_440 })
    }

    @Test("Sources that are not on the link get no answer")
    func offLink() {
        #expect(answers(to: question(type, DNSType.ptr), from: [8, 8, 8, 8]).isEmpty)
        #expect(answers(to: question(instance, DNSType.srv), from: [10, 0, 0, 1], port: 40_000).isEmpty)
    }

    @Test("A probe for a name of ours is answered at once")
    func defence() throws {
        var message = question(instance, DNSType.any, unicast: true)
        let other = try #require(DomainName("other.local"))
        message.authorities = [
            DNSRecord(
                try #require(instance),
                .srv(priority: 0, weight: 0, port: 9, target: other),
                ttl: 120,
                isUnique: false
            )
        ]
        #expect(
            answers(to: message, within: 0).first?.message.answers.map(\.data.type).contains(DNSType.srv)
                == true
        )
    }

    @Test("A record is sent to all at most once a second")
    func rateLimit() {
        let network = SimulatedNetwork(seed: 12)
        network.addHost()
        _ = network.publish("trips", at: 0)
        network.run(for: 60_000)
        let start = network.now
        for _ in 0..<100 {
            network.inject(question(type, DNSType.ptr).encoded(limit: 9_000)[0], from: [169, 254, 9, 9])
            network.run(for: 50)
        }
        network.run(for: 2_000)
        #expect(network.messages(since: start).filter { $0.message.isResponse }.count <= 6)
    }

    @Test("Records with the cache-flush bit replace older ones after a second")
    func cacheFlush() throws {
        let network = SimulatedNetwork(seed: 13)
        network.addHost()
        let service = ServiceName(instance: "far", type: .loveseat)
        let name = try #require(service.domainName)
        let host = try #require(DomainName("far.local"))
        func announce(_ address: [UInt8]) {
            var message = DNSMessage()
            message.isResponse = true
            message.answers = [
                DNSRecord(
                    name,
                    .srv(priority: 0, weight: 0, port: 9, target: host),
                    ttl: 120,
                    isUnique: true
                ),
                DNSRecord(name, .txt([0]), ttl: 4_500, isUnique: true),
                DNSRecord(host, .a(address), ttl: 120, isUnique: true),
            ]
            network.inject(message.encoded(limit: 9_000)[0], from: [169, 254, 9, 9])
        }
        let id = network.with(0) { $0.resolve(service, at: $1) }
        announce([169, 254, 9, 9])
        network.run(for: 5_000)
        announce([169, 254, 9, 10])
        network.run(for: 1_500)
        network.with(0) { node, _ in node.endResolution(id ?? 0) }
        let last = network.with(0) { $0.resolve(service, at: $1) }
        announce([169, 254, 9, 10])
        network.run(for: 100)
        let found = network.hosts[0].events.compactMap { event -> [MulticastNode.Location]? in
            if case .resolved(last, let locations) = event { locations } else { nil }
        }.last
        #expect(found?.first?.addresses == [[169, 254, 9, 10]])
    }
}
