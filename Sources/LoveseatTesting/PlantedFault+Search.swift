extension PlantedFault {
    /// Plants the mistake in one history after another, each in the worlds and with the hubs without which it cannot show.
    ///
    /// - Returns: the first seed whose history notices it, and has no problem without it; nil if there is none.
    public func search(_ seeds: ClosedRange<UInt64>, _ configure: (inout Simulation) -> Void) throws
        -> UInt64?
    {
        for seed in seeds {
            var simulation = Simulation(seed: seed)
            configure(&simulation)
            simulation.plant(self)
            guard try !simulation.run().problems.isEmpty else { continue }
            simulation.fault = nil
            if try simulation.run().problems.isEmpty { return seed }
        }
        return nil
    }
}
