import LoveseatCore
import LoveseatModel

/// Blobs that no document refers to yet.
extension Database {
    /// Stores a blob, whose digest is known then. ``MaintenanceType/compact`` removes it unless a document refers to it.
    ///
    /// - Throws: `notOpen`; an error of the disk.
    public func saveBlob(blob: Blob) throws { try blob.install(into: engine) }

    /// Returns a blob by the properties that ``Blob/properties`` names; nil if it is not in the database. Properties that are not those of a
    /// blob end the program.
    ///
    /// - Throws: `notOpen`.
    public func getBlob(properties: [String: Any]) throws -> Blob? {
        guard Blob.isBlob(properties: properties) else {
            programmerError("these are not the properties of a blob: \(properties)")
        }
        guard let blob = Blob(properties: properties) else { return nil }
        return try CBLError.converting {
            guard let reference = BlobReference(blob.json), try engine.blobLength(reference) != nil else {
                return nil
            }
            return Blob(reference, engine)
        }
    }
}
