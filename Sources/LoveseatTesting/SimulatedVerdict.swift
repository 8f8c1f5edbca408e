import LoveseatModel
import LoveseatReplication

/// The answer of an app's resolver to every conflict.
enum SimulatedVerdict: CaseIterable {
    case local, remote, newest, merge, random, nothing

    /// Whether all peers that have this resolver decide alike, whichever of the two versions is theirs.
    var isSymmetric: Bool { self == .newest || self == .merge }

    /// `chance`: decides where the resolver does not.
    func resolve(_ conflict: ConflictCase, chance: () -> Bool) -> Resolution {
        func keep(_ keepsLocal: Bool) -> Resolution {
            let side = keepsLocal ? conflict.local : conflict.remote
            return side.isDeleted ? .deleted : keepsLocal ? .local : .remote
        }
        switch self {
        case .local: return keep(true)
        case .remote: return keep(false)
        case .newest: return keep(conflict.local.revision > conflict.remote.revision)
        case .merge: return MergingResolver.resolve(conflict)
        case .random: return keep(chance())
        case .nothing: return .deleted
        }
    }
}
