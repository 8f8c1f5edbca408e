import LoveseatModel

extension CollectionName {
    /// - Throws: `invalidParameter` if a name breaks the rules.
    init(checking name: String, _ scope: String?) throws(LoveseatError) {
        guard let checked = CollectionName(scope: scope ?? Self.defaultPart, name: name) else {
            throw LoveseatError(
                .invalidParameter,
                "\"\(scope ?? "").\(name)\" is not a valid name for a collection: use 1 to 251 of A-Z a-z 0-9 _ - %, first not _ or %"
            )
        }
        self = checked
    }

    func requireDeletable() throws(LoveseatError) {
        guard self != .default else {
            throw LoveseatError(
                .invalidParameter,
                "the default collection cannot be deleted: purge its documents instead"
            )
        }
    }
}
