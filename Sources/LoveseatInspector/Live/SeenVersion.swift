/// The version of a database that pages have been told of.
package struct SeenVersion: Sendable {
    /// The last one that could be read.
    private var version: Int?
    private var isReadable = true

    package init() {}

    /// Notes the version as of now; nil if it cannot be read.
    ///
    /// - Returns: whether the pages have to read again: also when the database cannot be read any more, which they then show, and when it
    ///   can be read again.
    package mutating func see(_ new: Int?) -> Bool {
        // Before the first look, pages have read what there is.
        let hasChanged = version != nil && (new.map { $0 != version } ?? false || isReadable != (new != nil))
        version = new ?? version
        isReadable = new != nil
        return hasChanged
    }
}
