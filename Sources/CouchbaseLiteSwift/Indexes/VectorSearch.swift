// Couchbase Lite's names for vector search, which Loveseat does not have, so that the compiler says what to do instead.
import LoveseatCore

/// Extensions of the database, of which Loveseat has none.
@available(
    *,
    deprecated,
    message:
        "Loveseat has no vector search, and throws `unsupported`: search the vectors with another library"
)
public enum Extension {
    /// Enables vector search, which Loveseat does not have.
    public static func enableVectorSearch() throws { throw CBLError.noVectors }
}

/// An index of vectors, which Loveseat does not have.
@available(
    *,
    deprecated,
    message:
        "Loveseat has no vector search, and throws `unsupported`: search the vectors with another library"
)
public struct VectorIndexConfiguration: EngineIndexConfiguration, Sendable {
    /// The SQL++ expression of the vector.
    public let expression: String
    /// The number of dimensions.
    public let dimensions: UInt32
    /// The number of groups into which vectors are divided.
    public let centroids: UInt32
    /// How vectors are compressed.
    public var encoding = VectorEncoding.scalarQuantizer(type: .SQ8)
    /// How distances are measured.
    public var metric = DistanceMetric.euclideanSquared
    /// The number of vectors from which the index learns at least. 0 is chosen by the index.
    public var minTrainingSize: UInt32 = 0
    /// The number of vectors from which the index learns at most. 0 is chosen by the index.
    public var maxTrainingSize: UInt32 = 0
    /// The number of groups that a query searches. 0 is chosen by the index.
    public var numProbes: UInt32 = 0
    /// Whether the app adds the vectors, instead of the index reading them from documents.
    public var isLazy = false

    /// Creates a configuration.
    public init(expression: String, dimensions: UInt32, centroids: UInt32) {
        self.expression = expression
        self.dimensions = dimensions
        self.centroids = centroids
    }

    func engine() throws -> any LoveseatCore.IndexConfiguration { throw CBLError.noVectors }
}

/// How vectors are compressed.
public enum VectorEncoding: Sendable {
    /// Not at all.
    case none
    /// Each number becomes a smaller one.
    case scalarQuantizer(type: ScalarQuantizerType)
    /// Parts of vectors become numbers of this many bits.
    case productQuantizer(subquantizers: UInt32, bits: UInt32)
}

/// The number of bits of a compressed number.
public enum ScalarQuantizerType: UInt32, Sendable {
    /// 4 bits.
    case SQ4 = 4
    /// 6 bits.
    case SQ6 = 6
    /// 8 bits.
    case SQ8 = 8
}

/// How distances between vectors are measured.
public enum DistanceMetric: UInt32, Sendable {
    /// The square of the Euclidean distance.
    case euclideanSquared = 1
    /// One less the cosine of the angle.
    case cosine
    /// The Euclidean distance.
    case euclidean
    /// The negative dot product.
    case dot
}

extension QueryIndex {
    /// Begins an update of a lazy index of vectors, which Loveseat does not have.
    @available(
        *,
        deprecated,
        message:
            "Loveseat has no vector search, and throws `unsupported`: search the vectors with another library"
    )
    public func beginUpdate(limit: UInt64) throws -> IndexUpdater? { throw CBLError.noVectors }
}

/// An update of an index of vectors. There is none, since Loveseat has no such index.
public enum IndexUpdater: ArrayProtocol {
    /// The number of values that need a vector.
    public var count: Int { switch self {} }

    /// The value from which all getters are made. Apps have no use for it.
    public func _stored(at index: Int) -> _StoredValue? { switch self {} }

    /// The values.
    public func toArray() -> [Any] { switch self {} }

    /// The values as JSON text.
    public func toJSON() -> String { switch self {} }

    /// Sets the vector of a value. Nil means that it has none.
    public func setVector(_ vector: [Float]?, at index: Int) throws { switch self {} }

    /// Leaves a value to the next update.
    public func skipVector(at index: Int) { switch self {} }

    /// Updates the index with the vectors.
    public func finish() throws { switch self {} }
}

extension CBLError {
    fileprivate static var noVectors: any Error {
        make(unsupported, "Loveseat has no vector search: search the vectors with another library")
    }
}
