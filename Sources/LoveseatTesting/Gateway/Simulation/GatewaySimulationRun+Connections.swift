import LoveseatBLIPReplication
import LoveseatReplication

/// The connections of a history, as its seed has them.
extension GatewaySimulationRun {
    func connect(_ client: GatewayClient) {
        if isQuiescing || traffic.links.contains(where: { $0.client === client }) { return }
        var plan = traffic.basis
        switch generator.int(0...5) {
        case 0: plan.pulls = false
        case 1: plan.pushes = false
        default: break
        }
        plan.isContinuous = generator.chance(0.5)
        plan.link.latency = generator.pick([0...0, 1...5, 20...300])
        plan.link.bytesPerMillisecond = generator.pick([1, 20, 100_000])
        plan.link.capacity = generator.pick([10_000, 1 << 20])
        plan.workDelay = generator.pick([0...0, 0...5, 0...200])
        plan.tuning = .drawn(from: &generator)
        plan.link.cutAfter = generator.chance(0.3) ? generator.int(1...generator.pick([1_000, 20_000])) : nil
        plan.link.notice = generator.pick([0...0, 0...500])
        plan.link.losesWhatIsUnderWay = generator.chance(0.5)
        plan.resolverFailures = generator.pick([0, 0, 0.3])
        if simulation.speaksVersions { plan.usesDeltas = generator.chance(0.5) }
        plan.reset = generator.chance(0.05) ? .checkpoint : .none
        if generator.chance(0.1) {
            plan.isContinuous = false
            plan.documentIDs = (0..<3).map { _ in randomID() }
        }
        traffic.open(client, plan)
    }
}
