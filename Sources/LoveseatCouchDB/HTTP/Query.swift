import LoveseatCouchDBReplication
import LoveseatModel

/// The parameters of a request: those of the URL, and those that some requests have in their body.
struct Query: Sendable {
    private var values: [ExactText: String] = [:]
    /// Parameters of a JSON body, which come first.
    private var members: JSONElement?

    /// The first value of a name counts.
    init(_ text: some StringProtocol) throws(CouchDBError) {
        for part in text.split(separator: "&") {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = PercentCoding.decode(pair[0]),
                let value = pair.count > 1 ? PercentCoding.decode(pair[1]) : ""
            else { throw .badRequest("the query is not percent-encoded UTF-8") }
            if values[ExactText(name)] == nil { values[ExactText(name)] = value }
        }
    }

    /// The same with the members of a body.
    func adding(_ body: JSONElement?) -> Query {
        var query = self
        query.members = body
        return query
    }

    subscript(name: String) -> String? { values[ExactText(name)] }

    func has(_ name: String) -> Bool { self[name] != nil || members?[name] != nil }

    /// A flag; nil if it is missing.
    func flag(_ name: String) throws(CouchDBError) -> Bool? {
        if let member = members?[name] {
            guard let flag = member.bool else {
                throw .queryParse("Invalid boolean parameter: \(member.value)")
            }
            return flag
        }
        switch self[name]?.lowercased() {
        case nil: return nil
        case "true": return true
        case "false": return false
        case let text?: throw .queryParse("Invalid boolean parameter: \"\(text)\"")
        }
    }

    /// A flag that is false if it is missing or is not a boolean, for what CouchDB does not check.
    func isSet(_ name: String) -> Bool { members?[name]?.bool ?? (self[name] == "true") }

    /// An integer; nil if it is missing.
    func integer(_ name: String) throws(CouchDBError) -> Int? {
        if let member = members?[name] {
            guard let number = member.int ?? member.string.flatMap({ Int($0) }) else {
                throw .queryParse("Invalid value for integer: \(member.value)")
            }
            return number
        }
        guard let text = self[name] else { return nil }
        guard let number = Int(text) else { throw .queryParse("Invalid value for integer: \"\(text)\"") }
        return number
    }

    /// An integer that is not negative; nil if it is missing.
    func count(_ name: String) throws(CouchDBError) -> Int? {
        guard let number = try integer(name) else { return nil }
        guard number >= 0 else {
            throw .queryParse("Invalid value for positive integer: \"\(number)\"")
        }
        return number
    }

    /// A JSON value; nil if it is missing.
    func json(_ names: String...) throws(CouchDBError) -> JSONElement? {
        for name in names {
            if let member = members?[name] { return member }
            guard let text = self[name] else { continue }
            do { return try JSONElement(parsing: Array(text.utf8)) } catch { throw .invalidJSON }
        }
        return nil
    }

    /// A list of revisions in JSON; nil if it is missing.
    func revisions(_ name: String) throws(CouchDBError) -> [RevisionID]? {
        guard let element = try json(name) else { return nil }
        guard element.kind == .array else { throw .badRequest("\(name) must be a JSON array of revisions") }
        var all: [RevisionID] = []
        for item in element.items {
            guard let text = item.string else { throw .invalidRevision }
            all.append(try RevisionText.parse(text))
        }
        return all
    }
}
