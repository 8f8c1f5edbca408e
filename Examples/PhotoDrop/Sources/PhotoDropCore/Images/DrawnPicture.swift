import Foundation

/// A landscape that is computed: a picture for trying PhotoDrop without photos. The same number always makes the same picture.
package struct DrawnPicture: Sendable {
    private struct Hill {
        let height: Double
        let waves: Double
        let phase: Double
        let colour: [Double]
    }

    private static let sunColour = [255.0, 244, 214]
    private static let hillCount = 3

    package let width: Int
    package let height: Int
    private let top: [Double]
    private let bottom: [Double]
    private let sun: (x: Double, y: Double, radius: Double)
    private let hills: [Hill]

    package init(number: Int, width: Int = 320, height: Int = 240) {
        self.width = width
        self.height = height
        var dice = Dice(state: UInt64(truncatingIfNeeded: number) &+ 1)
        top = [dice.roll(30...120), dice.roll(90...160), dice.roll(170...250)]
        bottom = [dice.roll(230...255), dice.roll(150...220), dice.roll(110...190)]
        sun = (dice.roll(0.2...0.8), dice.roll(0.2...0.45), dice.roll(0.05...0.1))
        hills = (0..<Self.hillCount).map { layer in
            let shade = 0.75 - 0.2 * Double(layer)
            return Hill(
                height: 0.45 + 0.16 * Double(layer) + dice.roll(-0.04...0.04),
                waves: dice.roll(1...3),
                phase: dice.roll(0...6),
                colour: [dice.roll(60...140), dice.roll(100...170), dice.roll(80...150)].map { $0 * shade }
            )
        }
    }

    /// The picture as a PNG file.
    package var png: [UInt8] { PNGWriter.file(width: width, height: height, rows: rows) }

    /// The rows of pixels, each red, green and blue.
    private var rows: [[UInt8]] {
        (0..<height).map { row in
            let y = Double(row) / Double(height)
            let sky = zip(top, bottom).map { $0 + ($1 - $0) * y }
            return (0..<width).flatMap { column in
                pixel(Double(column) / Double(width), y, sky).map { UInt8(clamping: Int($0)) }
            }
        }
    }

    /// The colour at a place, of which both numbers are from 0 to 1.
    private func pixel(_ x: Double, _ y: Double, _ sky: [Double]) -> [Double] {
        let hill = hills.last { y > $0.height + 0.07 * sin($0.waves * x * 2 * .pi + $0.phase) }
        if let hill { return hill.colour }
        let across = (x - sun.x) * Double(width) / Double(height)
        let isSun = across * across + (y - sun.y) * (y - sun.y) < sun.radius * sun.radius
        return isSun ? Self.sunColour : sky
    }

    /// Numbers that look random (SplitMix64), for pictures only.
    private struct Dice {
        var state: UInt64

        mutating func roll(_ range: ClosedRange<Double>) -> Double {
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = state
            mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
            mixed ^= mixed >> 31
            let share = Double(mixed >> 11) / Double(1 << 53)
            return range.lowerBound + (range.upperBound - range.lowerBound) * share
        }
    }
}
