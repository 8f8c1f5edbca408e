import LoveseatModel

/// Requests of a replicator and the answers of a real CouchDB, as recorded: lines of JSON.
package struct CouchDBRecording {
    private let exchanges: [JSONElement]

    /// - Throws: ``JSONError`` for a line that is not JSON.
    package init(_ text: String) throws {
        exchanges = try text.split(separator: "\n").map { try JSONElement(parsing: Array($0.utf8)) }
    }

    /// The endpoints of the requests that are compared. Other requests are about logins, views and feeds that wait.
    private static let endpoints: Set<Substring> = [
        "_changes", "_revs_diff", "_bulk_get", "_bulk_docs", "_local", "_ensure_full_commit",
    ]

    /// Sends the requests to a scripted CouchDB.
    ///
    /// - Returns: how many answers were compared, and a sentence for each that differs.
    package func compare(with couch: ScriptedCouchDB) -> (compared: Int, differences: [String]) {
        var compared = 0
        var differences: [String] = []
        for exchange in exchanges {
            guard let method = exchange["method"]?.string, let path = exchange["path"]?.string,
                exchange["injected"] == nil, exchange["cut"] == nil
            else { continue }
            let parts = path.prefix { $0 != "?" }.split(separator: "/")
            let isOfDatabase = parts.count == 1 && !path.hasPrefix("/_")
            guard isOfDatabase || (parts.count > 1 && Self.endpoints.contains(parts[1])) else {
                // A document that is written otherwise: nothing after it can be compared.
                if method != "GET", parts.count > 1 { break }
                continue
            }
            guard let recorded = exchange["response"]?["body"]?.string else { continue }
            let request = exchange["request"]?["body"]?.string ?? ""
            let answer = couch.answer(
                SimulatedCall(
                    method: method,
                    host: "couch",
                    target: Self.withSequences(path),
                    headers: [("Content-Type", "application/json")],
                    body: Array(request.utf8)
                )
            )
            compared += 1
            let place = "\(exchange["k"]?.int ?? 0): \(method) \(path)"
            let status = exchange["status"]?.int ?? 0
            // 202 says that not all nodes have it yet.
            if answer.status != status { differences.append("\(place): \(answer.status), not \(status)") }
            let (ours, theirs) = (Self.comparable(answer.body), Self.comparable(Array(recorded.utf8)))
            if ours != theirs {
                differences.append(
                    "\(place): \(ours.map { "\($0)" } ?? "-"), not \(theirs.map { "\($0)" } ?? "-")"
                )
            }
        }
        return (compared, differences)
    }

    /// `<seq:7>` is the sequence after seven updates.
    private static func withSequences(_ path: String) -> String {
        path.replacing("<seq:", with: "").replacing("%3Cseq:", with: "").replacing(">", with: "")
    }

    /// An answer without what no two servers have in common, and without the order of what has none.
    private static func comparable(_ body: [UInt8]) -> JSONValue? {
        guard let element = try? JSONElement(scanning: body, limits: .envelope) else { return nil }
        return comparable(element.value)
    }

    private static let own: Set<String> = [
        "instance_start_time", "sizes", "props", "cluster", "disk_format_version", "compact_running",
    ]

    private static func comparable(_ value: JSONValue) -> JSONValue {
        switch value {
        case .array(let items):
            let items = items.map(comparable)
            return .array(
                items.sorted { JSONText(canonical: $0).description < JSONText(canonical: $1).description }
            )
        case .object(let members):
            var object: JSONValue = [:]
            for name in members.keys where !own.contains(name) {
                guard let member = value[name] else { continue }
                let isSequence = ["seq", "last_seq", "update_seq", "purge_seq"].contains(name)
                if isSequence, let text = member.string {
                    object[name] = .string(
                        String(text.filter { $0 != "<" }.replacing("seq:", with: "").prefix { $0.isNumber })
                    )
                } else if name == "ids", let ids = member.array {
                    // A history has an order.
                    object[name] = .string(ids.compactMap(\.string).joined(separator: " "))
                } else {
                    object[name] = comparable(member)
                }
            }
            return object
        default: return value
        }
    }
}
