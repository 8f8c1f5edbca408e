import Loveseat

/// The rule for documents that were edited on two devices at once: both people's edits stay.
///
/// - An edit wins over a deletion: what somebody still needs comes back.
/// - A property that one of them changed has the changed value.
/// - A text that both changed has both texts: "oat milk / soy milk".
/// - A check mark that only one of them knows of is left out.
///
/// The result depends on the conflict alone, and is the same whichever side asks: devices that merge apart from each other agree.
package struct KeepBoth: ConflictResolverProtocol {
    package init() {}

    package func resolve(conflict: Conflict) async throws -> Document? {
        guard let mine = conflict.localDocument, let theirs = conflict.remoteDocument else {
            return conflict.localDocument ?? conflict.remoteDocument
        }
        let base = conflict.baseDocument?.properties ?? [:]
        let merged = Self.merge(mine.properties, theirs.properties, base: base)
        if merged == mine.properties { return mine }
        return merged == theirs.properties ? theirs : Document(id: conflict.documentID, merged)
    }

    /// Merges the properties of two documents, also those that this version of the app does not know.
    package static func merge(_ mine: JSONObject, _ theirs: JSONObject, base: JSONObject) -> JSONObject {
        var merged = mine
        for name in JSONObject(mine, theirs).keys {
            merged[name] = merge(mine[name], theirs[name], base: base[name], isLong: name == "note")
        }
        return merged
    }

    private static func merge(_ mine: JSONValue?, _ theirs: JSONValue?, base: JSONValue?, isLong: Bool)
        -> JSONValue?
    {
        if mine == theirs || theirs == base { return mine }
        if mine == base { return theirs }
        guard let mine, let theirs else { return mine ?? theirs }
        if case (.bool(let one), .bool(let other)) = (mine, theirs) { return .bool(one && other) }
        // Any order will do that is the same on all devices.
        let sorted = [mine, theirs].sorted {
            $0.description.utf8.lexicographicallyPrecedes($1.description.utf8)
        }
        guard let first = sorted[0].string, let second = sorted[1].string else { return sorted[1] }
        // One of them may have been merged with the other before.
        if first.utf8.contains(second.utf8) { return .string(first) }
        if second.utf8.contains(first.utf8) { return .string(second) }
        return .string(first + (isLong ? "\n" : " / ") + second)
    }
}

extension JSONObject {
    /// The members of both objects.
    fileprivate init(_ one: JSONObject, _ other: JSONObject) {
        self = one
        for (name, value) in other { self[name] = value }
    }
}
