import LoveseatDiscoveryCore
import Testing

@Suite("Multicast DNS on a virtual clock")
struct SimulationTests {
    @Test("A service is probed three times 250 ms apart, and announced twice a second apart")
    func probesAndAnnounces() {
        let network = SimulatedNetwork(seed: 1)
        network.addHost()
        let id = network.publish("trips", at: 0)
        network.run(for: 3_000)
        #expect(network.published(by: 0) == [id: "trips"])
        let messages = network.messages()
        let probes = messages.filter { !$0.message.isResponse }
        #expect(probes.count == 3)
        #expect(probes[0].time <= 250)
        #expect(zip(probes, probes.dropFirst()).allSatisfy { $1.time - $0.time == 250 })
        #expect(
            probes.allSatisfy {
                $0.message.questions.allSatisfy { $0.wantsUnicast && $0.type == DNSType.any }
            }
        )
        #expect(probes.allSatisfy { $0.message.authorities.count == 3 })
        let announcements = messages.filter { $0.message.isResponse }
        #expect(announcements.count == 2)
        #expect(announcements[1].time - announcements[0].time == 1_000)
        for record in announcements[0].message.answers {
            #expect(record.isUnique == (record.data.type != DNSType.ptr))
        }
    }

    @Test(
        "Hosts that start at once with one name on a lossy link get different names, and all see all",
        arguments: 1...12
    )
    func manyPeers(seed: UInt64) {
        let network = SimulatedNetwork(seed: seed)
        network.loss = 20
        let count = 12
        for _ in 0..<count {
            let host = network.addHost()
            _ = network.with(host) { $0.browse(.loveseat, at: $1) }
            _ = network.publish("trips", port: UInt16(5_000 + host), at: host)
        }
        network.run(for: 1_200_000)
        let names = (0..<count).map { network.published(by: $0).values.first }
        #expect(Set(names).count == count)
        #expect(!names.contains(nil))
        let all = Set(names.compactMap { $0 })
        for host in 0..<count {
            #expect(
                network.seen(by: host).symmetricDifference(all) == [],
                "\(all.subtracting(network.seen(by: host)))"
            )
        }
        // Goodbyes, of which some are lost, and what did not arrive is found by asking.
        network.loss = 0
        for host in 1..<count {
            for id in network.published(by: host).keys { network.with(host) { node, _ in node.withdraw(id) } }
        }
        network.run(for: 2_000)
        #expect(network.seen(by: 0) == Set([names[0] ?? ""]))
    }

    @Test("A service that is published is found within 300 ms, with its TXT record")
    func findsQuickly() {
        for seed in UInt64(1)...50 {
            let network = SimulatedNetwork(seed: seed)
            network.addHost()
            network.addHost()
            _ = network.publish("trips", text: [3, 0x61, 0x3D, 0x62], at: 0)
            network.run(for: 5_000)
            let browse = network.with(1) { $0.browse(.loveseat, at: $1) }
            network.run(for: 300)
            #expect(network.seen(by: 1) == ["trips"])
            let name = ServiceName(instance: "trips", type: .loveseat)
            #expect(network.hosts[1].events.contains(.text(browse ?? 0, name, [3, 0x61, 0x3D, 0x62])))
        }
    }

    @Test(
        "Of two simultaneous probes, the one with the later data wins, and the other host takes another name"
    )
    func tieBreak() {
        for seed in UInt64(1)...20 {
            let network = SimulatedNetwork(seed: seed)
            for port in [UInt16(1_000), 2_000] {
                _ = network.publish("trips", port: port, at: network.addHost())
            }
            network.run(for: 10_000)
            let names = [network.published(by: 0).values.first, network.published(by: 1).values.first]
            #expect(Set(names) == ["trips", "trips #2"])
        }
    }

    @Test("Two owners of a name that meet when a link comes up end with different names")
    func lateConflict() {
        for seed in UInt64(1)...20 {
            let network = SimulatedNetwork(seed: seed)
            for port in [UInt16(1_000), 2_000] {
                let host = network.addHost()
                _ = network.with(host) { $0.browse(.loveseat, at: $1) }
                if host == 1 { network.setLink(up: false, of: 1) }
                _ = network.publish("trips", port: port, at: host)
            }
            network.run(for: 5_000)
            network.setLink(up: true, of: 1)
            network.run(for: 30_000)
            let names = [network.published(by: 0).values.first, network.published(by: 1).values.first]
            #expect(Set(names) == ["trips", "trips #2"])
            #expect(network.seen(by: 0) == ["trips", "trips #2"])
            #expect(network.seen(by: 1) == ["trips", "trips #2"])
        }
    }

    @Test("A withdrawn service disappears after a second")
    func goodbye() {
        let network = SimulatedNetwork(seed: 3)
        network.addHost()
        network.addHost()
        let id = network.publish("trips", at: 0)
        _ = network.with(1) { $0.browse(.loveseat, at: $1) }
        network.run(for: 5_000)
        network.with(0) { node, _ in node.withdraw(id) }
        network.run(for: 900)
        #expect(network.seen(by: 1) == ["trips"])
        network.run(for: 200)
        #expect(network.seen(by: 1) == [])
    }

    @Test(
        "A service that says nothing any more disappears when its time to live ends, or three seconds after a reconfirmation"
    )
    func silentEnd() {
        let name = ServiceName(instance: "trips", type: .loveseat)
        for reconfirms in [true, false] {
            let network = SimulatedNetwork(seed: 4)
            network.addHost()
            network.addHost()
            _ = network.publish("trips", at: 0)
            _ = network.with(1) { $0.browse(.loveseat, at: $1) }
            network.run(for: 5_000)
            network.with(1) { $0.reconfirm(name, at: $1) }
            network.run(for: 5_000)
            #expect(network.seen(by: 1) == ["trips"], "it has answered")
            network.hosts[0].isUp = false
            if reconfirms {
                network.with(1) { $0.reconfirm(name, at: $1) }
                network.run(for: 3_100)
            } else {
                network.run(for: 4_400_000)
                #expect(network.seen(by: 1) == ["trips"])
                network.run(for: 200_000)
            }
            #expect(network.seen(by: 1) == [])
        }
    }

    @Test("A record that is about to expire is asked for at 80, 85, 90 and 95 % of its time to live")
    func refresh() {
        let network = SimulatedNetwork(seed: 5)
        network.addHost()
        network.addHost()
        _ = network.publish("trips", at: 0)
        _ = network.with(1) { $0.browse(.loveseat, at: $1) }
        network.run(for: 20_000)
        network.hosts[0].isUp = false
        network.run(for: 3_500_000)
        let start = network.now
        network.run(for: 1_000_000)
        let asked = network.messages(since: start).filter { entry in
            !entry.message.isResponse && entry.message.questions.contains { $0.type == DNSType.ptr }
        }.map { $0.time / 1_000 }
        #expect(asked.count >= 4)
        #expect(zip(asked, asked.dropFirst()).allSatisfy { $1 - $0 <= 226 })
    }

    @Test("A service that is still there is refreshed, and stays for a day")
    func staysForADay() {
        let network = SimulatedNetwork(seed: 6)
        network.addHost()
        network.addHost()
        _ = network.publish("trips", at: 0)
        _ = network.with(1) { $0.browse(.loveseat, at: $1) }
        network.run(for: 86_400_000)
        #expect(network.seen(by: 1) == ["trips"])
        #expect(!network.hosts[1].events.contains { if case .disappeared = $0 { true } else { false } })
    }

    @Test("Ten idle peers send less than a kilobyte a minute")
    func idleTraffic() {
        let network = SimulatedNetwork(seed: 7)
        for _ in 0..<10 {
            let host = network.addHost()
            _ = network.with(host) { $0.browse(.loveseat, at: $1) }
            _ = network.publish("trips on host \(host)", text: ServiceTextTests.typical, at: host)
        }
        network.run(for: 600_000)
        let start = network.now
        network.run(for: 36_000_000)
        let bytes = network.datagrams.filter { $0.time >= start }.reduce(0) { $0 + $1.bytes.count }
        #expect(bytes < 600 * 1_000)
    }

    @Test("A changed TXT record arrives without a goodbye, at most one a second")
    func textUpdates() {
        let network = SimulatedNetwork(seed: 8)
        network.addHost()
        network.addHost()
        let id = network.publish("trips", text: [1, 0x61], at: 0)
        let browse = network.with(1) { $0.browse(.loveseat, at: $1) } ?? 0
        network.run(for: 5_000)
        let start = network.now
        for byte in UInt8(0x62)...0x6B {
            network.with(0) { $0.update(id, text: [1, byte], at: $1) }
            network.run(for: 100)
        }
        network.run(for: 5_000)
        let name = ServiceName(instance: "trips", type: .loveseat)
        #expect(
            network.hosts[1].events.last { if case .text = $0 { true } else { false } }
                == .text(browse, name, [1, 0x6B])
        )
        #expect(network.seen(by: 1) == ["trips"])
        let sent = network.messages(since: start).filter { $0.message.isResponse }
        #expect(sent.count <= 4)
        #expect(sent.allSatisfy { $0.message.answers.allSatisfy { $0.ttl > 0 } })
        #expect(network.published(by: 0) == [id: "trips"])
    }

    @Test("A link that goes down loses its services, and finds them again when it comes up")
    func downAndUp() {
        let network = SimulatedNetwork(seed: 9)
        network.addHost()
        network.addHost()
        _ = network.publish("trips", at: 0)
        _ = network.with(1) { $0.browse(.loveseat, at: $1) }
        network.run(for: 5_000)
        network.setLink(up: false, of: 1)
        network.run(for: 100)
        #expect(network.seen(by: 1) == [])
        network.run(for: 60_000)
        network.setLink(up: true, of: 1)
        network.run(for: 300)
        #expect(network.seen(by: 1) == ["trips"])
        // The same for the link of the one that publishes.
        network.setLink(up: false, of: 0)
        network.run(for: 10_000)
        network.setLink(up: true, of: 0)
        network.run(for: 2_000)
        #expect(network.published(by: 0).values.first == "trips")
    }

    @Test("Two services of one host have one host name, and resolve to their ports")
    func twoServices() {
        let network = SimulatedNetwork(seed: 10)
        network.addHost()
        network.addHost()
        let first = network.publish("trips", port: 1_001, at: 0)
        _ = network.publish("notes", port: 1_002, at: 0)
        network.run(for: 5_000)
        for (name, port) in [("trips", UInt16(1_001)), ("notes", 1_002)] {
            let service = ServiceName(instance: name, type: .loveseat)
            let id = network.with(1) { $0.resolve(service, at: $1) }
            network.run(for: 500)
            let found = network.hosts[1].events.compactMap { event -> [MulticastNode.Location]? in
                if case .resolved(id, let locations) = event { locations } else { nil }
            }.last
            #expect(found?.first?.port == port)
            #expect(found?.first?.addresses == [network.hosts[0].address])
            #expect(found?.first?.host == "lv-1.local")
        }
        _ = network.with(1) { $0.browse(.loveseat, at: $1) }
        network.run(for: 1_000)
        network.with(0) { node, _ in node.withdraw(first) }
        network.run(for: 1_100)
        #expect(network.seen(by: 1) == ["notes"])
    }
}
