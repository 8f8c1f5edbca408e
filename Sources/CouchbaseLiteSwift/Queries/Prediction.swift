public import LoveseatCore

// Couchbase Lite's names for predictive queries, which Loveseat does not have, so that the compiler says what to do instead.

/// A model for predictive queries, which Loveseat does not have.
@available(
    *,
    unavailable,
    message: "Loveseat has no predictive queries: save the model's output as a property, and query that"
)
public protocol PredictiveModel {
    /// Returns the model's output.
    func predict(input: DictionaryObject) -> DictionaryObject?
}

/// A Core ML model for predictive queries, which Loveseat does not have.
@available(
    *,
    unavailable,
    message: "Loveseat has no predictive queries: save the model's output as a property, and query that"
)
public final class CoreMLPredictiveModel {}

/// The models of predictive queries, which Loveseat does not have.
@available(
    *,
    unavailable,
    message: "Loveseat has no predictive queries: save the model's output as a property, and query that"
)
public final class Prediction {
    /// Names a model.
    public func registerModel(_ model: any PredictiveModel, withName name: String) {}
    /// Forgets a model.
    public func unregisterModel(withName name: String) {}
}

extension Database {
    /// The models of predictive queries, which Loveseat does not have.
    @available(
        *,
        unavailable,
        message: "Loveseat has no predictive queries: save the model's output as a property, and query that"
    )
    public static var prediction: Prediction { Prediction() }
}

/// A model's output in a query, which Loveseat does not have.
@available(
    *,
    unavailable,
    message: "Loveseat has no predictive queries: save the model's output as a property, and query that"
)
public protocol PredictionFunction: ExpressionProtocol {
    /// A property of the output.
    func propertyPath(_ path: String) -> any ExpressionProtocol
}

extension LoveseatCore.Function {
    /// A model's output, which Loveseat does not have.
    @available(
        *,
        unavailable,
        message: "Loveseat has no predictive queries: save the model's output as a property, and query that"
    )
    public static func prediction(model: String, input: any ExpressionProtocol) -> any PredictionFunction {
        programmerError("there are no predictive queries")
    }
}

/// An index of a model's output, which Loveseat does not have.
@available(
    *,
    unavailable,
    message: "Loveseat has no predictive queries: save the model's output as a property, and index that"
)
public final class PredictiveIndex: Index {}

extension IndexBuilder {
    /// An index of a model's output, which Loveseat does not have.
    @available(
        *,
        unavailable,
        message: "Loveseat has no predictive queries: save the model's output as a property, and index that"
    )
    public static func predictiveIndex(
        model: String,
        input: any ExpressionProtocol,
        properties: [String]? = nil
    ) -> PredictiveIndex { PredictiveIndex() }
}
