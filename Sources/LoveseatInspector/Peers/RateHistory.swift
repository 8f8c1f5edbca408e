import LoveseatModel

/// Documents and bytes of the last two minutes, second by second.
struct RateHistory: Sendable {
    static let seconds = 120

    struct Sample: Hashable, Sendable {
        var sent: UInt64 = 0
        var received: UInt64 = 0
        var bytes: UInt64 = 0
    }

    private(set) var samples: [Sample] = []

    mutating func add(_ sample: Sample) {
        if samples.count == Self.seconds { samples.removeFirst() }
        samples.append(sample)
    }

    var json: JSONValue {
        .array(
            samples.map { .array([JSONValue($0.sent), JSONValue($0.received), JSONValue($0.bytes)]) }
        )
    }
}
