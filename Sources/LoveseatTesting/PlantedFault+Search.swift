extension PlantedFault {
    /// How often a history must notice the mistake. With several hubs about one history in a thousand shows by itself what the
    /// mistake leads to, so one would prove nothing.
    private var proofs: Int { hubs > 1 ? 2 : 1 }

    /// Plants the mistake in one history after another, each in the worlds and with the hubs without which it cannot show.
    ///
    /// A history counts that notices something and has no problem without the mistake.
    ///
    /// - Returns: the seeds of the histories that prove that it is noticed; nil if there are not enough of them.
    public func search(_ seeds: ClosedRange<UInt64>, _ configure: (inout Simulation) -> Void) throws
        -> [UInt64]?
    {
        var found: [UInt64] = []
        for seed in seeds {
            var simulation = Simulation(seed: seed)
            configure(&simulation)
            simulation.plant(self)
            guard isNoticed(try simulation.run().problems) else { continue }
            simulation.fault = nil
            guard try simulation.run().problems.isEmpty else { continue }
            found.append(seed)
            if found.count == proofs { return found }
        }
        return nil
    }

    /// One line cannot say that two documents were put on top of each other, so with several hubs one history in fifty ends
    /// with a deletion of another document.
    private func isNoticed(_ problems: [String]) -> Bool {
        problems.contains { hubs < 2 || !$0.hasPrefix("UNDELETED") }
    }
}
