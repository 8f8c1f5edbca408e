/// A value that the app promises to be safe on the thread that uses it: a closure, an object, or what a listener is called with.
///
/// Unchecked, since Couchbase Lite's types do not say it.
struct Unguarded<Value>: @unchecked Sendable { let value: Value }
