// Only in a copy of the tree that scripts/mutate makes.
#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The number of the mutant that this process is; 0 for none.
private let activeMutant: Int = getenv("LOVESEAT_MUTANT").flatMap { Int(String(cString: $0)) } ?? 0

/// Whether this process is a mutant.
package func mutated(_ number: Int) -> Bool { number == activeMutant }
