import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// Makes the mistake that is planted in a history with versions.
final class VersionMistakes {
    let fault: PlantedVersionFault
    private var dice: SeededGenerator
    /// The vector with which a version first came up. It does not include what the version won over later.
    private var firstVectors: [String: [Version: VersionVector]] = [:]

    init(_ fault: PlantedVersionFault, seed: UInt64) {
        self.fault = fault
        dice = SeededGenerator(seed: seed ^ 0x6661_756C_7473)
    }

    /// Whether to make a mistake now that need not be made every time.
    func errs(_ mistake: PlantedVersionFault) -> Bool { fault == mistake && dice.chance(0.5) }

    /// Somebody has a state of a document.
    func note(_ vector: VersionVector, of id: String) {
        if fault == .forgetLoser, let version = vector.current, firstVectors[id]?[version] == nil {
            firstVectors[id, default: [:]][version] = vector
        }
    }

    /// Puts the mistake between a database and its sessions with Couchbase Lite.
    func layers(over replicas: any ReplicaSource, of owner: SimulatedPeer) -> any ReplicaSource {
        LayeredReplicas(replicas) { [self] replica, index in
            FaultyVersions(replica, index, owner: owner, self)
        }
    }

    /// Returns the state of a document as the mistake has the peer see it.
    func state(_ state: StateHistory?, of id: String) -> StateHistory? {
        // A document without a version has no vector.
        guard let state, let version = state.vector.current else { return state }
        switch fault {
        case .leavePreviousOut: return StateHistory(VersionVector(version), revisions: state.revisions)
        case .forgetLoser:
            return StateHistory(
                firstVectors[id]?[version] ?? state.vector,
                revisions: state.revisions
            )
        default: return state
        }
    }

    /// Returns a message to Couchbase Lite as the mistake has it.
    ///
    /// A vector that names its author twice is not a value that a database could store, so it is made of the text.
    func changed(_ event: BLIPConnection.Event, _ issued: IssuedVersions) -> BLIPConnection.Event {
        guard fault == .keepOwnEntry, case .request(let number, let message) = event,
            message.profile == "rev", let id = message.properties["id"],
            case .version(let version) = message.properties["rev"].flatMap({ try? RevisionName($0) }),
            let own = issued.previous(version, of: id)
        else { return event }
        let parts = (message.properties["history"] ?? "").split(
            separator: ";",
            omittingEmptySubsequences: false
        )
        let merged = parts.count > 1 ? "\(parts[0]); " : ""
        let older = parts.last.map { $0.drop { $0 == " " } } ?? ""
        var changed = message
        changed.properties["history"] = "\(merged)\(own.text)\(older.isEmpty ? "" : ", \(older)")"
        return .request(number: number, changed)
    }
}
