extension JSONObject {
    /// Returns this object with the changes that a type made to it, or nil if the type changed nothing.
    ///
    /// Members that the type does not know, at any depth, and values that it did not change keep their text.
    ///
    /// `before`: the object as the type writes it unchanged. `after`: as the type writes it after the change.
    package func applying(changesFrom before: JSONObject, to after: JSONObject) -> JSONObject? {
        before == after ? nil : merged(before, after)
    }

    fileprivate func merged(_ before: JSONObject, _ after: JSONObject) -> JSONObject {
        var changed = self
        for key in before.keys where after[key] == nil { changed[key] = nil }
        for (key, value) in after where before[key] != value {
            guard let known = before[key], let own = self[key] else {
                changed[key] = value
                continue
            }
            changed[key] = own.merged(known, value)
        }
        return changed
    }
}

extension JSONValue {
    func merged(_ before: JSONValue, _ after: JSONValue) -> JSONValue {
        if before == after { return self }
        // A reference to a blob is one value: nothing of the old one belongs to the new one.
        if let blob = BlobReference(after), blob.digest != BlobReference(before)?.digest { return after }
        switch (self, before, after) {
        case (.object(let own), .object(let before), .object(let after)):
            return .object(own.merged(before, after))
        case (.array(let own), .array(let before), .array(let after)):
            return .array(ArrayChanges(stored: own, before: before, after: after).merged())
        default: return after
        }
    }
}

/// The elements of an array, matched between the stored array, the one that a type writes from it, and the one that it writes after a
/// change.
///
/// The array that a type writes may have another order than the stored one, as that of a set has, and may lack elements that the type
/// cannot read. A changed element no longer has the content by which it could be recognised: `Documents.md` says how it is matched.
private struct ArrayChanges {
    let stored: [Item]
    let before: [Item]
    let after: [Item]
    private let arePairs: Bool

    /// An element. In a dictionary whose keys are not strings, which is an array of alternating keys and values, it is a key with its
    /// value.
    struct Item: Hashable {
        var key: JSONValue?
        var value: JSONValue

        /// The name of the element: the key of a dictionary, or a property `id`.
        var identity: JSONValue? {
            if let key { return key }
            guard case .object(let members) = value else { return nil }
            return members["id"] ?? members["_id"]
        }
    }

    init(stored: [JSONValue], before: [JSONValue], after: [JSONValue]) {
        let arePairs = [stored, before, after].allSatisfy(Self.isDictionary)
        self.arePairs = arePairs
        self.stored = Self.items(stored, arePairs)
        self.before = Self.items(before, arePairs)
        self.after = Self.items(after, arePairs)
    }

    /// Whether elements at even positions are different scalars, and all others objects or arrays.
    private static func isDictionary(_ values: [JSONValue]) -> Bool {
        guard values.count % 2 == 0 else { return false }
        for (index, value) in values.enumerated() {
            switch value {
            case .object, .array: if index % 2 == 0 { return false }
            case .null, .bool, .number, .string: if index % 2 == 1 { return false }
            }
        }
        let keys = stride(from: 0, to: values.count, by: 2).map { values[$0] }
        return Set(keys).count == keys.count
    }

    private static func items(_ values: [JSONValue], _ arePairs: Bool) -> [Item] {
        guard arePairs else { return values.map { Item(key: nil, value: $0) } }
        return stride(from: 0, to: values.count, by: 2).map { Item(key: values[$0], value: values[$0 + 1]) }
    }

    func merged() -> [JSONValue] {
        let origins = origins()
        let matches = matches()
        // Stored elements that the type did not write stay after the element that they follow now.
        let known = Set(origins.compactMap { $0 })
        let kept = Set(matches.compactMap { $0.flatMap { origins[$0] } })
        var (first, behind) = ([Int](), [Int: [Int]]())
        var anchor: Int?
        for index in stored.indices {
            if known.contains(index) {
                if kept.contains(index) { anchor = index }
            } else if let anchor {
                behind[anchor, default: []].append(index)
            } else {
                first.append(index)
            }
        }
        var result: [JSONValue] = []
        func append(_ item: Item) {
            if let key = item.key { result.append(key) }
            result.append(item.value)
        }
        for index in first { append(stored[index]) }
        for (item, match) in zip(after, matches) {
            guard let match, let origin = origins[match] else {
                append(item)
                continue
            }
            let own = stored[origin]
            append(
                Item(
                    key: before[match].key == item.key ? own.key : item.key,
                    value: own.value.merged(before[match].value, item.value)
                )
            )
            for index in behind[origin] ?? [] { append(stored[index]) }
        }
        return result
    }

    // MARK: Elements that a type wrote, and those that it read

    /// For each element that the type wrote before the change, the stored element from which it was read.
    private func origins() -> [Int?] {
        let known = before.reduce(into: Set<ExactText>()) { $0.formUnion($1.names) }
        if before.count == stored.count, zip(before, stored).allSatisfy({ $0.fits($1, knowing: known) }) {
            return before.indices.map { $0 }
        }
        var origins = [Int?](repeating: nil, count: before.count)
        var isFree = [Bool](repeating: true, count: stored.count)
        func connect(_ index: Int, _ origin: Int) {
            origins[index] = origin
            isFree[origin] = false
        }
        // The same text is tried first, which is also fast for scalars.
        var places: [Item: [Int]] = [:]
        var holders: [Member: [Int]] = [:]
        for (index, item) in stored.enumerated().reversed() { places[item, default: []].append(index) }
        for (index, item) in before.enumerated() {
            if let place = places[item]?.popLast() { connect(index, place) }
        }
        for place in stored.indices where isFree[place] {
            for member in stored[place].scalars { holders[member, default: []].append(place) }
        }
        var trials = Self.maximumTrials
        func find(_ item: Item, among places: some Sequence<Int>) -> Int? {
            places.first { place in
                guard isFree[place], trials > 0 else { return false }
                trials -= 1
                return item.fits(stored[place], knowing: known)
            }
        }
        for (index, item) in before.enumerated() where origins[index] == nil {
            // Those that share its rarest value are probably few.
            let likely = item.scalars.compactMap { holders[$0] }.min { $0.count < $1.count }
            if let place = find(item, among: likely ?? []) ?? find(item, among: stored.indices) {
                connect(index, place)
            }
        }
        if trials == 0 { return origins }
        // The type writes other values than it has read.
        let rest = before.indices.filter { origins[$0] == nil }
        let free = stored.indices.filter { isFree[$0] }
        if rest.count == free.count { for (index, place) in zip(rest, free) { connect(index, place) } }
        return origins
    }

    /// The maximum number of comparisons. Comparing thousands of elements with each other would take too long: beyond this, they count as
    /// new.
    private static let maximumTrials = 4_000_000

    // MARK: Elements before and after the change

    /// For each element after the change, the element before it.
    private func matches() -> [Int?] {
        var matches = [Int?](repeating: nil, count: after.count)
        var isFree = [Bool](repeating: true, count: before.count)
        func connect(_ index: Int, _ place: Int) {
            matches[index] = place
            isFree[place] = false
        }
        let shorter = min(before.count, after.count)
        var start = 0
        while start < shorter, before[start] == after[start] {
            connect(start, start)
            start += 1
        }
        var end = 0
        while end < shorter - start, before[before.count - 1 - end] == after[after.count - 1 - end] {
            connect(after.count - 1 - end, before.count - 1 - end)
            end += 1
        }
        func connect<Key: Hashable>(by key: (Item) -> Key?) {
            var places: [Key: [Int]] = [:]
            for index in before.indices.reversed() where isFree[index] {
                if let key = key(before[index]) { places[key, default: []].append(index) }
            }
            for index in after.indices where matches[index] == nil {
                if let key = key(after[index]), let place = places[key]?.popLast() { connect(index, place) }
            }
        }
        connect { $0 }
        connect { $0.identity }
        if !arePairs { connectRest(matches, isFree, connect) }
        return matches
    }

    /// Matches elements without an equal one, between those that are matched.
    private func connectRest(_ matches: [Int?], _ isFree: [Bool], _ connect: (Int, Int) -> Void) {
        let found = matches.compactMap { $0 }
        let isInOrder = zip(found, found.dropFirst()).allSatisfy(<)
        // The gap that an element is in, by the element before it that is matched.
        var (changed, free) = ([Int: [Int]](), [Int: [Int]]())
        var gap = -1
        for (index, match) in matches.enumerated() {
            if let match {
                if isInOrder { gap = match }
            } else {
                changed[gap, default: []].append(index)
            }
        }
        gap = -1
        for index in before.indices {
            if isFree[index] { free[gap, default: []].append(index) } else if isInOrder { gap = index }
        }
        for (gap, indices) in changed {
            var places = free[gap] ?? []
            if indices.count == places.count {
                for (index, place) in zip(indices, places) where after[index].may(be: before[place]) {
                    connect(index, place)
                }
                continue
            }
            guard indices.count * places.count <= Self.maximumTrials else { continue }
            var pairs: [(likeness: Int, index: Int, place: Int)] = []
            for index in indices {
                for place in places where after[index].may(be: before[place]) {
                    let likeness = after[index].likeness(to: before[place])
                    if likeness > 0 { pairs.append((likeness, index, place)) }
                }
            }
            // The sort is stable: of pairs that are equally alike, the first counts.
            pairs.sort { $0.likeness > $1.likeness }
            var rest = indices
            for (_, index, place) in pairs {
                guard let one = rest.firstIndex(of: index), let other = places.firstIndex(of: place) else {
                    continue
                }
                rest.remove(at: one)
                places.remove(at: other)
                connect(index, place)
            }
            // Elements are added at the end more often than elsewhere. Which of several elements was removed is not known.
            guard rest.count >= places.count else { continue }
            for (index, place) in zip(rest, places) where after[index].may(be: before[place]) {
                connect(index, place)
            }
        }
    }
}

/// A member whose value is neither an object nor an array.
private struct Member: Hashable {
    let name: ExactText
    let value: JSONValue
}

extension ArrayChanges.Item {
    fileprivate var scalars: [Member] {
        guard case .object(let members) = value else { return [] }
        return members.compactMap { name, value in
            switch value {
            case .object, .array: nil
            case .null, .bool, .number, .string: Member(name: ExactText(name), value: value)
            }
        }
    }

    fileprivate var names: [ExactText] { value.object?.keys.map { ExactText($0) } ?? [] }

    /// Whether a type may have read this element from a stored one.
    ///
    /// `known`: names that the type seems to know. It would have written those that are stored.
    fileprivate func fits(_ stored: Self, knowing known: Set<ExactText> = []) -> Bool {
        if let key, let other = stored.key, !key.fits(other) { return false }
        guard value.fits(stored.value) else { return false }
        guard case .object(let own) = value, case .object(let other) = stored.value else { return true }
        return known.allSatisfy { own[$0.text] != nil || other[$0.text] ?? .null == .null }
    }

    /// Whether this may be the other element after a change. Elements with different names are different elements.
    fileprivate func may(be other: Self) -> Bool {
        guard let own = identity, let others = other.identity else { return true }
        return own == others
    }

    /// The number of equal members.
    fileprivate func likeness(to other: Self) -> Int {
        guard case .object(let own) = value, case .object(let others) = other.value else { return 0 }
        return own.reduce(0) { $0 + (others[$1.key] == $1.value ? 1 : 0) }
    }
}

extension JSONValue {
    /// Whether a type that has read the other value may write this one.
    fileprivate func fits(_ stored: JSONValue) -> Bool {
        switch (self, stored) {
        case (.number(let own), .number(let other)):
            own == other || own.double == other.double || Float(own.text) == Float(other.text)
        case (.string(let own), .string(let other)):
            own.isExactly(other) || own.lowercased() == other.lowercased() || own.isSameTime(as: other)
        case (.array(let own), .array(let other)):
            own.count == other.count && zip(own, other).allSatisfy { $0.fits($1) }
        case (.object(let own), .object(let other)):
            own.allSatisfy { key, value in other[key].map { value.fits($0) } ?? true }
        default: self == stored
        }
    }
}

extension String {
    /// Whether both are times that are equal in milliseconds.
    fileprivate func isSameTime(as other: String) -> Bool {
        guard let own = ISO8601Time(self), let other = ISO8601Time(other) else { return false }
        return abs(own.seconds - other.seconds) <= 1 && abs(own.milliseconds - other.milliseconds) <= 1
    }
}

extension ISO8601Time {
    fileprivate var milliseconds: Int64 { seconds * 1_000 + fraction * 1_000 / fractionsPerSecond }
}
