#if canImport(SwiftUI)
public import SwiftUI
#endif

/// The value of a ``LiveModel`` as a property, which a SwiftUI view keeps for as long as it is shown.
///
/// ```swift
/// struct SightList: View {
///     @Live private var sights: [Sight]
///
///     init(_ collection: Loveseat.Collection) { _sights = Live(LiveQuery(collection, .prefix("paris:"))) }
///
///     var body: some View { List(sights) { Text($0.city) } }
/// }
/// ```
///
/// The property itself is ``LiveModel/value``; with `$` in front it is the model, with its error.
///
/// The view keeps the first model that it is given. Give it another identity, with `id(_:)`, to make it take another one.
@propertyWrapper
public struct Live<Value: Sendable> {
    #if canImport(SwiftUI)
    @State private var model: LiveModel<Value>
    #else
    private let model: LiveModel<Value>
    #endif

    /// Creates a property whose value is that of a model. Observation begins when the property is read for the first time.
    @MainActor public init(_ model: LiveModel<Value>) { self.model = model }

    /// The latest value of the model.
    @MainActor public var wrappedValue: Value { model.value }

    /// The model.
    @MainActor public var projectedValue: LiveModel<Value> { model }
}

#if canImport(SwiftUI)
extension Live: DynamicProperty {}
#endif
