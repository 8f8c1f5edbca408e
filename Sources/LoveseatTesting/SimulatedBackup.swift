import LoveseatModel
import LoveseatStorage

/// The folder of a peer's database at some time.
struct SimulatedBackup {
    let store: StoreSnapshot
    let blobs: [BlobDigest: [UInt8]]
    let privateUUID: [UInt8]
    let mayLackTombstones: Bool
    /// The edits that the database tells of.
    let knowledge: EditOracle.Knowledge
}
