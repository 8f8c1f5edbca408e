package import LoveseatModel

/// The difference between two JSON values, as a list of changed places.
package struct JSONDifference: Hashable, Sendable {
    package enum Kind: String, Sendable { case added, removed, changed }

    package struct Change: Hashable, Sendable {
        /// The place, as a JSON pointer (RFC 6901).
        package let path: String
        package let kind: Kind
        package let old: JSONValue?
        package let new: JSONValue?
    }

    package private(set) var changes: [Change] = []
    /// Whether there are more than ``maximumChanges``.
    package private(set) var isCut = false

    package static let maximumChanges = 2_000

    package init(from old: JSONValue, to new: JSONValue) { compare(old, new, at: "") }

    private mutating func add(_ path: String, _ kind: Kind, _ old: JSONValue?, _ new: JSONValue?) {
        guard changes.count < Self.maximumChanges else { return isCut = true }
        changes.append(Change(path: path, kind: kind, old: old, new: new))
    }

    private mutating func compare(_ old: JSONValue, _ new: JSONValue, at path: String) {
        if isCut || old == new { return }
        switch (old, new) {
        case (.object(let old), .object(let new)): compare(old, new, at: path)
        case (.array(let old), .array(let new)): compare(old, new, at: path)
        default: add(path, .changed, old, new)
        }
    }

    private mutating func compare(_ old: JSONObject, _ new: JSONObject, at path: String) {
        for key in Set(old.keys).union(new.keys).sorted() {
            let place = "\(path)/\(JSONPointer.escaped(key))"
            switch (old[key], new[key]) {
            case (let old?, let new?): compare(old, new, at: place)
            case (let old?, nil): add(place, .removed, old, nil)
            case (nil, let new?): add(place, .added, nil, new)
            case (nil, nil): break
            }
        }
    }

    /// Items that are the same at both ends belong together; those in between are compared one by one.
    private mutating func compare(_ old: [JSONValue], _ new: [JSONValue], at path: String) {
        let shorter = min(old.count, new.count)
        var start = 0
        while start < shorter, old[start] == new[start] { start += 1 }
        var end = 0
        while end < shorter - start, old[old.count - 1 - end] == new[new.count - 1 - end] { end += 1 }
        let (oldEnd, newEnd) = (old.count - end, new.count - end)
        for position in start..<max(oldEnd, newEnd) {
            let place = "\(path)/\(position)"
            if position >= oldEnd {
                add(place, .added, nil, new[position])
            } else if position >= newEnd {
                add(place, .removed, old[position], nil)
            } else {
                compare(old[position], new[position], at: place)
            }
        }
    }

    var json: JSONValue {
        [
            "isCut": .bool(isCut),
            "changes": .array(
                changes.map { change in
                    var json: JSONObject = [
                        "path": .string(change.path), "kind": .string(change.kind.rawValue),
                    ]
                    json["from"] = change.old
                    json["to"] = change.new
                    return .object(json)
                }
            ),
        ]
    }
}
