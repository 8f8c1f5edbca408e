// Couchbase Lite's names for what Loveseat does not have, so that the compiler says what to do instead.

/// An index of vectors, which Loveseat does not have.
@available(
    *,
    unavailable,
    message:
        "Loveseat has no vector indexes: keep the vectors in documents, and search them with a library for vectors"
)
public struct VectorIndexConfiguration {}

/// An update of an index of vectors, which Loveseat does not have.
@available(
    *,
    unavailable,
    message:
        "Loveseat has no vector indexes: keep the vectors in documents, and search them with a library for vectors"
)
public final class IndexUpdater {}

/// Extensions of the database, of which Loveseat has none.
@available(*, unavailable, message: "Loveseat has no extensions: remove the call")
public enum Extension {
    /// Enables vector search, which Loveseat does not have.
    public static func enableVectorSearch() throws {}
}

/// A model for predictive queries, which Loveseat does not have.
@available(
    *,
    unavailable,
    message: "Loveseat has no predictive queries: save the model's output as a property, and query that"
)
public protocol PredictiveModel {}

/// An index of a model's output, which Loveseat does not have.
@available(
    *,
    unavailable,
    message: "Loveseat has no predictive queries: save the model's output as a property, and index that"
)
public final class PredictiveIndex {}

extension QueryIndex {
    /// Updates an index of vectors, which Loveseat does not have.
    @available(
        *,
        unavailable,
        message:
            "Loveseat has no vector indexes: keep the vectors in documents, and search them with a library for vectors"
    )
    public func beginUpdate(limit: UInt64) throws -> IndexUpdater? { nil }
}
