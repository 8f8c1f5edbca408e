/// A closure or object of the app, which the app promises to be safe where the engine uses it.
///
/// Unchecked, since Couchbase Lite's types do not say it.
struct Unguarded<Value>: @unchecked Sendable { let value: Value }
