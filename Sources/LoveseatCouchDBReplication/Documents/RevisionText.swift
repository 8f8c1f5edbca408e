package import LoveseatModel

/// Revisions as CouchDB's peers write them (protocol/couchdb.md §2.2).
package enum RevisionText {
    /// The highest generation that is taken: the next edit needs room, and peers of the other wire take no higher one either.
    private static let highestGeneration: UInt32 = 1 << 31

    /// Reads a revision. 32 hexadecimal digits are written in lower case; 32 other characters are refused, as CouchDB does.
    ///
    /// - Throws: ``CouchDBError/invalidRevision``.
    package static func parse(_ text: String) throws(CouchDBError) -> RevisionID {
        guard let dash = text.utf8.firstIndex(of: UInt8(ascii: "-")) else { throw .invalidRevision }
        let digest = text.utf8[text.utf8.index(after: dash)...]
        var text = text
        if digest.count == 32 {
            let isHexadecimal = digest.allSatisfy {
                (0x30...0x39).contains($0) || (0x41...0x46).contains($0 & 0xDF)
            }
            guard isHexadecimal else { throw .invalidRevision }
            text = text.lowercased()
        }
        guard let id = RevisionID(text), id.generation < highestGeneration else { throw .invalidRevision }
        return id
    }

    /// Reads `_revisions`, newest first; empty for none.
    package static func history(_ element: JSONElement) throws(CouchDBError) -> [RevisionID] {
        guard element.kind == .object, let start = element["start"]?.int, let ids = element["ids"],
            ids.kind == .array
        else { throw .illegalRevisions("_revisions isn't a array of revision IDs.") }
        guard start >= 0, start < Int(highestGeneration) else {
            throw .illegalRevisions("_revisions.start isn't an integer.")
        }
        var history: [RevisionID] = []
        // CouchDB accepts more IDs than generations. There is nothing below the first one.
        for (index, id) in ids.items.prefix(start).enumerated() {
            guard let digest = id.string else {
                throw .illegalRevisions("RevId isn't a string")
            }
            history.append(try parse("\(start - index)-\(digest)"))
        }
        return history
    }

    /// Writes `_revisions`, in the order in which CouchDB has its members: the first one is `start`.
    package static func revisions(_ history: [RevisionID], listed limit: Int = .max) -> String {
        let ids = listed(history, limit).map { JSONValue.string(String($0.digest)) }
        return revisions(start: history.first?.generation ?? 0, ids)
    }

    /// The revisions of a history that peers are told of: at most `limit`. The list ends before a gap, because the unknown revisions in it
    /// cannot be named.
    package static func listed(_ history: [RevisionID], _ limit: Int) -> ArraySlice<RevisionID> {
        let first = Int(history.first?.generation ?? 0)
        let gap = history.indices.first { Int(history[$0].generation) != first - $0 }
        return history.prefix(min(gap ?? history.count, limit))
    }

    /// Writes `_revisions` of these IDs.
    package static func revisions(start: UInt32, _ ids: [JSONValue]) -> String {
        "{\"start\":\(start),\"ids\":\(JSONValue.array(ids))}"
    }
}
