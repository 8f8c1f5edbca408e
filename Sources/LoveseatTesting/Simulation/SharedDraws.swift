import LoveseatBLIPReplication

extension ReplicationTuning {
    /// The tuning of a connection to a peer of another kind.
    static func drawn(from dice: inout SeededGenerator) -> ReplicationTuning {
        var tuning = ReplicationTuning()
        tuning.changesPerMessage = dice.pick([10, 20, 200])
        tuning.insertBatch = dice.pick([1, 5, 100])
        tuning.revisionsTransmitting = dice.pick([1, 3, 10])
        tuning.revisionsRequested = dice.pick([5, 50, 200])
        tuning.checkpointDelay = dice.pick([50, 500, 5_000])
        return tuning
    }
}

extension UInt64 {
    /// Adds an event to the digest of a history's trace (FNV-1a).
    mutating func addEvent(_ event: String) {
        for byte in event.utf8 { self = (self ^ UInt64(byte)) &* 0x100_0000_01B3 }
    }
}
