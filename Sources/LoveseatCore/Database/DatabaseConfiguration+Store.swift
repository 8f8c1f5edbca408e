import Logging
import LoveseatModel
import LoveseatStorage

extension DatabaseConfiguration {
    /// The options with which the store of a database is opened.
    ///
    /// - Throws: `invalidParameter` for a setting that is not allowed.
    func storeOptions(for name: String, _ folder: DatabaseFolder) throws(LoveseatError)
        -> DocumentStore.Options
    {
        guard (1...Self.largestMaximumDocumentBytes).contains(maximumDocumentBytes) else {
            throw LoveseatError(
                .invalidParameter,
                "maximumDocumentBytes is \(maximumDocumentBytes): use 1 to \(Self.largestMaximumDocumentBytes)"
            )
        }
        guard busyTimeout >= .zero else {
            throw LoveseatError(.invalidParameter, "busyTimeout is negative: use 0 or more")
        }
        guard Self.cacheSizes.contains(cacheSize) else {
            throw LoveseatError(
                .invalidParameter,
                "cacheSize is \(cacheSize): use \(1 << 20) to \(Self.cacheSizes.upperBound) bytes"
            )
        }
        var options = DocumentStore.Options()
        options.fullSync = fullSync
        options.isReadOnly = readOnly
        options.excludesWriters = excludesWriters
        options.busyTimeout = busyTimeout
        options.cacheSize = cacheSize
        options.ancestorBodiesKept = enableDeltaSync ? Self.deltaBasesKept : 0
        options.remembersAncestorBodies = remembersDeltaSync
        options.onNewIdentity = {
            LogDomain.database.log(
                .notice,
                "\(name): \(folder) was copied from another folder or a backup: it compares all documents with its peers once"
            )
        }
        options.system.onNewSource = { reason in
            LogDomain.database.log(.notice, "\(name): \(reason): new versions get another source")
        }
        return options
    }
}
