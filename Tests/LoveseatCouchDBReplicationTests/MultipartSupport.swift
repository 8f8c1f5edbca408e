import LoveseatCouchDBReplication

/// A multipart body as a whole, or the error that ended it.
struct ParsedBody: Hashable {
    struct Part: Hashable {
        var fields: [String] = []
        var data: [UInt8] = []
        var isComplete = false
    }

    var parts: [Part] = []
    var endedCount = 0
    var wasClosed = false
    var error: MultipartError?

    /// Parses a body that arrives in pieces. After an error only the error is kept: the events before it depend on the
    /// pieces.
    init(_ pieces: [ArraySlice<UInt8>], boundary: String, limits: MultipartParser.Limits = .init()) {
        var parser = MultipartParser(boundary: boundary, limits: limits)
        do throws(MultipartError) {
            for piece in pieces { add(try parser.receive(piece)) }
            let completion = try parser.finish()
            add(completion.events)
            wasClosed = completion.wasClosed
        } catch {
            self.parts = []
            self.endedCount = 0
            self.error = error
        }
    }

    init(_ text: String, boundary: String = "B") {
        self.init([Array(text.utf8)[...]], boundary: boundary)
    }

    /// The data of the parts as text.
    var texts: [String] { parts.map { String(decoding: $0.data, as: UTF8.self) } }

    private mutating func add(_ events: [MultipartParser.Event]) {
        for event in events {
            switch event {
            case .partBegan(let headers):
                parts.append(Part(fields: headers.fields.map { "\($0.name)=\($0.value)" }))
            case .data(let data):
                guard let last = parts.indices.last, !parts[last].isComplete, !data.isEmpty else {
                    endedCount = .min
                    return
                }
                parts[last].data += data
            case .partEnded:
                guard let last = parts.indices.last, !parts[last].isComplete else {
                    endedCount = .min
                    return
                }
                parts[last].isComplete = true
            case .ended: endedCount += 1
            }
        }
    }
}

/// SplitMix64: the same numbers for the same seed.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

/// Cuts bytes at random places.
func randomPieces(of bytes: [UInt8], using random: inout SeededGenerator) -> [ArraySlice<UInt8>] {
    var pieces: [ArraySlice<UInt8>] = []
    var rest = bytes[...]
    while !rest.isEmpty {
        let count = Int.random(in: 0...min(rest.count, Bool.random(using: &random) ? 3 : 60), using: &random)
        pieces.append(rest.prefix(count))
        rest = rest.dropFirst(count)
    }
    return pieces
}

/// Returns data made of the fragments that delimiters are made of.
func nearBoundaryData(_ boundary: String, count: Int, using random: inout SeededGenerator) -> [UInt8] {
    let name = Array(boundary.utf8)
    var data: [UInt8] = []
    for _ in 0..<count {
        switch Int.random(in: 0..<9, using: &random) {
        case 0: data.append(0x0D)
        case 1: data.append(0x0A)
        case 2: data += [0x0D, 0x0A]
        case 3: data += [0x0D, 0x0A, 0x2D, 0x2D]
        case 4:
            data += [0x0D, 0x0A, 0x2D, 0x2D] + name.prefix(Int.random(in: 0..<name.count, using: &random))
        case 5: data += [0x0D, 0x0A, 0x2D, 0x2D] + name + [0x78]
        case 6: data += [0x0D, 0x0A, 0x2D, 0x2D] + name + [0x2D, 0x78]
        case 7: data += [0x0D, 0x0A, 0x2D, 0x2D] + name + [0x20, 0x09, 0x0D, 0x78]
        default: data.append(UInt8.random(in: .min ... .max, using: &random))
        }
    }
    return data
}
