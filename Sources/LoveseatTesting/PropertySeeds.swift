import Foundation

/// How many random cases the tests of properties try.
package enum PropertySeeds {
    /// The seeds of a property's cases: `LOVESEAT_NAME_SEEDS` of them from `LOVESEAT_NAME_FIRST` on, by default `count` from 1 on.
    /// `LOVESEAT_PROPERTY_SCALE` multiplies the count of all properties.
    package static func of(_ name: String, _ count: UInt64) -> Range<UInt64> {
        func setting(_ name: String) -> UInt64? {
            ProcessInfo.processInfo.environment["LOVESEAT_\(name)"].flatMap { UInt64($0) }
        }
        let first = setting("\(name)_FIRST") ?? 1
        return first..<first + (setting("\(name)_SEEDS") ?? count * (setting("PROPERTY_SCALE") ?? 1))
    }
}
