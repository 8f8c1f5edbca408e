import Foundation
import LoveseatCore
import LoveseatModel

/// The content of an array: items in JSON text, which are decoded when they are read, and those that were changed.
///
/// One that cannot change may be read by several threads at a time.
final class ArrayContents {
    let isMutable: Bool
    /// Where the content of blobs in the text is.
    private var database: EngineDatabase?
    /// The text of the array; nil after a change.
    private var source: JSONElement?
    /// The items, once one was read or changed.
    private var loaded: [_StoredValue]?

    init(_ source: JSONElement?, isMutable: Bool, _ database: EngineDatabase?) {
        self.source = source
        self.isMutable = isMutable
        self.database = database
    }

    var count: Int { (isMutable ? loaded?.count : nil) ?? source?.count ?? 0 }

    /// The item at a position; nil beyond the end.
    func stored(_ index: Int) -> _StoredValue? {
        isMutable ? item(index) : DictionaryContents.wrappers.withLock { item(index) }
    }

    private func item(_ index: Int) -> _StoredValue? {
        load()
        guard let items = loaded, items.indices.contains(index) else { return nil }
        guard case .element(let element) = items[index].kind, element.isContainer else { return items[index] }
        let wrapped = _StoredValue(wrapping: element, isMutable: isMutable, database)
        loaded?[index] = wrapped
        return wrapped
    }

    private func load() {
        if loaded != nil { return }
        loaded = source?.items.map { _StoredValue(.element($0)) } ?? []
    }

    // MARK: Changing

    func set(_ value: _StoredValue, at index: Int) {
        check(index, below: count)
        change { $0[index] = value }
    }

    func append(_ value: _StoredValue) { change { $0.append(value) } }

    func insert(_ value: _StoredValue, at index: Int) {
        check(index, below: count + 1)
        change { $0.insert(value, at: index) }
    }

    func remove(at index: Int) {
        check(index, below: count)
        change { $0.remove(at: index) }
    }

    func replace(with data: [Any]) { change { $0 = data.map { _StoredValue(any: $0) } } }

    /// Replaces everything by the items of a JSON array.
    func replace(with json: String) throws {
        source = try JSONElement(checking: json, for: .array)
        loaded = nil
    }

    private func change(_ body: (inout [_StoredValue]) -> Void) {
        load()
        var items = loaded ?? []
        // Letting go of the old storage first keeps the change in place.
        (loaded, source) = (nil, nil)
        body(&items)
        loaded = items
    }

    private func check(_ index: Int, below end: Int) {
        if index < 0 || index >= end { programmerError("the index \(index) is beyond the array") }
    }

    // MARK: As a whole

    /// Whether it differs from the text that it was read from.
    var isChanged: Bool { source == nil || (isMutable && loaded?.contains(where: \.isChanged) ?? false) }

    /// All items; those that are arrays or objects are wrapped.
    var items: [_StoredValue] { (0..<count).compactMap { stored($0) } }

    var json: [JSONValue] {
        if !isChanged, let array = source?.value.array { return array }
        return loaded?.map(\.json) ?? []
    }

    /// The items as values of Swift and Foundation, blobs excepted.
    var plain: [Any] { items.map(\.plain) }

    /// Canonical JSON text.
    var text: String {
        if isMutable { programmerError("toJSON() needs an array of a saved document") }
        return (source.map { JSONText(canonical: $0) } ?? JSONText(canonical: .array([]))).description
    }

    func copy() -> ArrayContents {
        let copy = ArrayContents(source, isMutable: true, database)
        if isChanged { copy.change { $0 = loaded?.map(\.copy) ?? [] } }
        return copy
    }

    func install(into database: EngineDatabase) throws {
        for value in loaded ?? [] { try value.install(into: database) }
        self.database = database
    }

    func isEqual(to other: ArrayContents) -> Bool {
        if self === other { return true }
        return count == other.count && zip(items, other.items).allSatisfy { $0.isEqual(to: $1) }
    }
}
