import Foundation
import LoveseatCore
import LoveseatModel

/// The content of a dictionary or a document: members in JSON text, which are decoded when they are read, and those that were changed.
///
/// One that cannot change may be read by several threads at a time.
final class DictionaryContents {
    let isMutable: Bool
    /// Where the content of blobs in the text is.
    private(set) var database: EngineDatabase?
    /// The text with the members that are not in `members`; nil after a change. It never changes if the contents cannot, so that reading them
    /// needs no lock.
    private var source: JSONElement?
    /// The text of a document as it is stored.
    private let storedText: JSONText?
    /// All members after a change; before, those that are objects, so that each is handed out as the same object.
    private var members: [ExactText: _StoredValue] = [:]

    /// How many members have room before a dictionary grows for the first time: as many as most documents have.
    private static let commonCount = 12

    /// Guards the objects that are made while contents are read that cannot change. It is held only to look one up or to make one.
    static let wrappers = NSLock()

    init(
        _ source: JSONElement?,
        isMutable: Bool,
        _ database: EngineDatabase?,
        storedText: JSONText? = nil
    ) {
        self.source = source
        self.isMutable = isMutable
        self.database = database
        self.storedText = storedText
    }

    func stored(_ key: String) -> _StoredValue? {
        let name = ExactText(key)
        if isMutable {
            guard let found = members[name] ?? source?[key].map({ _StoredValue(.element($0)) }) else {
                return nil
            }
            guard case .element(let element) = found.kind, element.isContainer else { return found }
            return wrap(element, name)
        }
        guard let element = source?[key] else { return nil }
        guard element.isContainer else { return _StoredValue(.element(element)) }
        return Self.wrappers.withLock { members[name] ?? wrap(element, name) }
    }

    private func wrap(_ element: JSONElement, _ name: ExactText) -> _StoredValue {
        let wrapped = _StoredValue(wrapping: element, isMutable: isMutable, database)
        members[name] = wrapped
        return wrapped
    }

    var keys: [String] {
        guard let source else { return members.keys.map(\.text) }
        return source.members.map(\.key)
    }

    var count: Int { source?.count ?? members.count }

    func contains(_ key: String) -> Bool { source.map { $0[key] != nil } ?? (members[ExactText(key)] != nil) }

    // MARK: Changing

    func set(_ value: consuming _StoredValue, _ key: String) {
        loadMembers()
        members[ExactText(key)] = value
    }

    func remove(_ key: String) {
        if !contains(key) { return }
        loadMembers()
        members[ExactText(key)] = nil
    }

    func replace(with data: [String: Any]) {
        source = nil
        members = Dictionary(
            data.map { (ExactText($0.key), _StoredValue(any: $0.value)) },
            uniquingKeysWith: { _, last in last }
        )
    }

    /// Replaces everything by the members of a JSON object.
    func replace(with json: String) throws {
        source = try JSONElement(checking: json, for: .object)
        members = [:]
    }

    private func loadMembers() {
        // There is no text left after the first change.
        guard let source else {
            if members.isEmpty { members = Dictionary(minimumCapacity: Self.commonCount) }
            return
        }
        members.reserveCapacity(source.count)
        let wrapped = members
        for (key, element) in source.members where wrapped[ExactText(key)] == nil {
            members[ExactText(key)] = _StoredValue(.element(element))
        }
        self.source = nil
    }

    // MARK: As a whole

    /// Whether it differs from the text that it was read from.
    var isChanged: Bool { source == nil || (isMutable && members.values.contains(where: \.isChanged)) }

    /// The text, if nothing was changed.
    var unchangedSource: JSONElement? { isChanged ? nil : source }

    var json: JSONObject {
        if let unchanged = unchangedSource?.value.object { return unchanged }
        var object = source?.value.object ?? [:]
        for (name, value) in members { object[name.text] = value.json }
        return object
    }

    /// The members as values of Swift and Foundation, blobs excepted.
    var plain: [String: Any] {
        Dictionary(
            keys.map { ($0, stored($0)?.plain ?? NSNull()) },
            uniquingKeysWith: { _, last in last }
        )
    }

    /// JSON text without white space between its parts: that of a document as it is stored, which is canonical if it was made here.
    var text: String {
        if isMutable { programmerError("toJSON() needs a saved document, or a dictionary of one") }
        if let storedText, storedText.isCompact { return storedText.description }
        return (source.map { JSONText(canonical: $0) } ?? JSONText(canonical: .object([:]))).description
    }

    func copy() -> DictionaryContents {
        let copy = DictionaryContents(source, isMutable: true, database)
        if unchangedSource == nil { copy.members = members.mapValues(\.copy) }
        return copy
    }

    func install(into database: EngineDatabase) throws {
        for value in members.values { try value.install(into: database) }
        self.database = database
    }

    func isEqual(to other: DictionaryContents) -> Bool {
        if self === other { return true }
        if let source = unchangedSource, let others = other.unchangedSource, source.bytes == others.bytes {
            return true
        }
        let keys = keys
        return keys.count == other.count
            && keys.allSatisfy { key in
                guard let mine = stored(key), let others = other.stored(key) else { return false }
                return mine.isEqual(to: others)
            }
    }
}

extension JSONText {
    /// Whether there is no white space between the parts of the text.
    fileprivate var isCompact: Bool {
        var (isInString, isEscaped) = (false, false)
        for byte in bytes {
            if isEscaped {
                isEscaped = false
            } else if byte == UInt8(ascii: "\"") {
                isInString.toggle()
            } else if isInString {
                isEscaped = byte == UInt8(ascii: "\\")
            } else if byte <= UInt8(ascii: " ") {
                return false
            }
        }
        return true
    }
}

extension JSONElement {
    var isContainer: Bool { kind == .array || kind == .object }

    /// Reads JSON text that has to be an object, or an array.
    ///
    /// - Throws: `invalidJSON`.
    init(checking json: String, for kind: Kind) throws {
        try self = CBLError.converting {
            let element = try JSONElement(parsing: Array(json.utf8))
            guard element.kind == kind else {
                throw LoveseatError(.invalidJSON, "the JSON text is not an \(kind)")
            }
            return element
        }
    }
}
