public import LoveseatModel
import LoveseatStorage

/// Changing documents that earlier versions of the app saved; see <doc:ChangingModels>.
///
/// Call a migration whenever the app starts, and when a replicator has pulled documents: each call looks only at documents that were changed
/// since the last one. Devices migrate on their own, at the same time or after each other. The same change of the same revision is the
/// same revision on each device, so it is neither a conflict nor sent twice.
///
/// Each device's closure also gets documents that another device has migrated. So it must leave those alone, and must always make the same
/// change: no dates, no random numbers. It is called again with its own result to verify that.
///
/// Documents are changed some hundred at a time, with a transaction for each part, which also stores how far the migration has come. If
/// the process ends, or the task is cancelled, the next call goes on there.
extension Collection {
    /// Changes documents to the form of today.
    ///
    /// ```swift
    /// try await sights.migrate("tags are arrays") { document in
    ///     guard let tags = document["tags"]?.string else { return }
    ///     document["tags"] = .array(tags.split(separator: ",").map { .string(String($0)) })
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - name: The migration's name in this collection. A migration that changes documents otherwise needs another one.
    ///   - change: Changes a document, or leaves it as it is. It runs outside any transaction, on no particular thread. A document that
    ///     somebody else changes meanwhile comes again.
    ///   - progress: Is called after each part, outside any transaction, with how far this call has come. By default nothing is done.
    /// - Returns: The number of documents that this call changed.
    /// - Throws: ``MigrationError`` for a document that the closure throws for, that cannot be saved, or that the closure changes again when it
    ///   gets its own result; ``LoveseatError``: `invalidParameter` for an empty name; `busy`, `notOpen`, `notWriteable`;
    ///   `CancellationError`.
    @concurrent @discardableResult
    public func migrate(
        _ name: String,
        _ change: @Sendable (inout Document) throws -> Void,
        progress: @Sendable (MigrationStatus) -> Void = { _ in }
    ) async throws -> Int {
        try await MigrationRun(name, of: self).perform(change, progress: progress)
    }

    /// Changes documents to the form of today; see `migrate(_:_:progress:)`. This call blocks the thread.
    @discardableResult
    public func migrate(
        _ name: String,
        _ change: (inout Document) throws -> Void,
        progress: (MigrationStatus) -> Void = { _ in }
    ) throws -> Int {
        try MigrationRun(name, of: self).performBlocking(change, progress: progress)
    }

    /// Changes documents as values of a type. Properties that the type does not know stay, as in ``update(id:as:_:)``.
    ///
    /// - Throws: As `migrate(_:_:progress:)`, also for a document that does not fit the type.
    @concurrent @discardableResult
    public func migrate<Model: Codable & SendableMetatype>(
        _ name: String,
        as type: Model.Type,
        _ change: @Sendable (inout Model) throws -> Void,
        progress: @Sendable (MigrationStatus) -> Void = { _ in }
    ) async throws -> Int {
        try await migrate(name, { _ = try $0.change(as: Model.self, change) }, progress: progress)
    }

    /// Changes documents as values of a type; see `migrate(_:as:_:progress:)`. This call blocks the thread.
    @discardableResult
    public func migrate<Model: Codable>(
        _ name: String,
        as type: Model.Type,
        _ change: (inout Model) throws -> Void,
        progress: (MigrationStatus) -> Void = { _ in }
    ) throws -> Int { try migrate(name, { _ = try $0.change(as: type, change) }, progress: progress) }

    /// Changes documents from one type to another. Properties that neither type knows stay.
    ///
    /// A document that is stored as the new type needs it, without its ``DocumentModel/defaults``, stays as it is.
    ///
    /// - Throws: As `migrate(_:_:progress:)`, also for a document that fits neither type.
    @concurrent @discardableResult
    public func migrate<Old: Codable & SendableMetatype, New: Codable & SendableMetatype>(
        _ name: String,
        from old: Old.Type,
        to new: New.Type,
        _ convert: @Sendable (Old) throws -> New,
        progress: @Sendable (MigrationStatus) -> Void = { _ in }
    ) async throws -> Int { try await migrate(name, { try $0.convert(convert) }, progress: progress) }

    /// Changes documents from one type to another; see `migrate(_:from:to:_:progress:)`. This call blocks the thread.
    @discardableResult
    public func migrate<Old: Codable, New: Codable>(
        _ name: String,
        from old: Old.Type,
        to new: New.Type,
        _ convert: (Old) throws -> New,
        progress: (MigrationStatus) -> Void = { _ in }
    ) throws -> Int { try migrate(name, { try $0.convert(convert) }, progress: progress) }

    /// Writes into documents what their model adds while it reads them: its ``DocumentModel/defaults``, and the names of today instead of
    /// its ``DocumentModel/renamedProperties``. Then queries and indexes find them.
    ///
    /// - Throws: As `migrate(_:_:progress:)`.
    @concurrent @discardableResult
    public func migrate<Model: DocumentModel & SendableMetatype>(
        _ name: String,
        as type: Model.Type,
        progress: @Sendable (MigrationStatus) -> Void = { _ in }
    ) async throws -> Int { try await migrate(name, { $0.complete(for: Model.self) }, progress: progress) }

    /// Writes into documents what their model adds while it reads them; see `migrate(_:as:progress:)`. This call blocks the thread.
    @discardableResult
    public func migrate<Model: DocumentModel>(
        _ name: String,
        as type: Model.Type,
        progress: (MigrationStatus) -> Void = { _ in }
    ) throws -> Int { try migrate(name, { $0.complete(for: type) }, progress: progress) }
}

extension Document {
    /// Writes what a model adds while it reads.
    fileprivate mutating func complete<Model: DocumentModel>(for type: Model.Type) {
        properties = properties.completed(for: type)
    }

    /// Replaces what one type knows by what another one does.
    fileprivate mutating func convert<Old: Codable, New: Codable>(_ convert: (Old) throws -> New) throws {
        if fits(New.self) { return }
        let old = try decode(Old.self)
        let before = try ownProperties(of: old)
        let after = try ownProperties(of: try convert(old))
        let stored = properties.renamed(for: Old.self)
        if let changed = stored.applying(changesFrom: before, to: after) { properties = changed }
    }

    /// Whether the document is stored as a type needs it.
    private func fits<T: Decodable>(_ type: T.Type) -> Bool {
        let element = element
        let members = ModelMembers.own(for: type, of: self, element)
        return (try? element.decode(type, hooks: .foundation, adding: members, listsAdded: false)) != nil
    }
}
