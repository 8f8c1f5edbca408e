import Crypto
package import LoveseatModel

/// Requests of a replicator and the answers of a real CouchDB, as recorded: lines of JSON.
package struct CouchDBRecording {
    private let exchanges: [JSONElement]

    /// - Throws: ``JSONError`` for a line that is not JSON.
    package init(_ text: String) throws {
        exchanges = try text.split(separator: "\n").map { try JSONElement(parsing: Array($0.utf8)) }
    }

    /// The endpoints of the requests that are compared. Other requests are about logins and views.
    private static let endpoints: Set<Substring> = [
        "_changes", "_revs_diff", "_bulk_get", "_bulk_docs", "_local", "_ensure_full_commit",
    ]

    /// Why a scripted CouchDB answers otherwise, by scenario and exchange.
    private static let deviations: [String: String] = [
        "cr-pull-auth-failure/7": "the scripted CouchDB asks nobody for a password",
        "cr-push-auth-failure/6": "the scripted CouchDB asks nobody for a password",
        "cr-pull-ddoc-filter/33": "the scripted CouchDB runs no JavaScript",
        "cr-push-too-large/15": "documents of the scripted CouchDB may have any size",
        "cr-push-too-large/19": "documents of the scripted CouchDB may have any size",
    ]

    /// An answer that is not the recorded one.
    package struct Difference: Sendable {
        package let text: String
        /// Why it may differ; nil if it should not.
        package let reason: String?
    }

    /// Sends the requests to a scripted CouchDB.
    ///
    /// - Returns: how many answers were compared, and those that differ.
    package func compare(with couch: ScriptedCouchDB) -> (compared: Int, differences: [Difference]) {
        var compared = 0
        var differences: [Difference] = []
        let scenario = exchanges.first?["scenario"]?.string ?? ""
        for exchange in exchanges {
            if let written = exchange["data"], written["method"]?.string == "PUT" {
                // Somebody wrote while nothing was recorded.
                _ = couch.answer(
                    Self.call("PUT", written["path"]?.string ?? "", written["body"].map { Array($0.bytes) })
                )
            }
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
            let answer = couch.answer(Self.call(method, path, exchange["request"].flatMap { Self.bytes($0) }))
            compared += 1
            let number = exchange["k"]?.int ?? 0
            let place = "\(number): \(method) \(path)"
            let reason = Self.deviations["\(scenario)/\(number)"]
            let status = exchange["status"]?.int ?? 0
            if answer.status != status {
                differences.append(
                    Difference(text: "\(place): \(answer.status), not \(status)", reason: reason)
                )
            }
            if let difference = Self.difference(answer.body, recorded, of: path) {
                differences.append(
                    Difference(text: "\(place): \(difference.text)", reason: reason ?? difference.reason)
                )
            }
        }
        return (compared, differences)
    }

    private static func call(_ method: String, _ path: String, _ body: [UInt8]?) -> SimulatedCall {
        SimulatedCall(
            method: method,
            host: "couch",
            target: withSequences(path),
            headers: [("Content-Type", "application/json")],
            body: body ?? []
        )
    }

    /// `<seq:7>` is the sequence after seven updates.
    private static func withSequences(_ path: String) -> String {
        path.replacing("<seq:", with: "").replacing("%3Cseq:", with: "").replacing(">", with: "")
    }

    // MARK: Bodies

    /// The body of a recorded request or answer, as bytes; nil if it has none.
    package static func bytes(_ message: JSONElement) -> [UInt8]? {
        if let text = message["body"]?.string { return Array(text.utf8) }
        if let text = message["body_b64"]?.string { return Base64.decode(text) }
        return message["body_parts"]?.items.reduce(into: []) { $0 += bytes(ofPart: $1) }
    }

    private static func bytes(ofPart part: JSONElement) -> [UInt8] {
        if let text = part["text"]?.string { return Array(text.utf8) }
        if let text = part["b64"]?.string { return Base64.decode(text) ?? [] }
        guard let name = part["gen"]?.string else { return [] }
        let length = part["length"]?.int ?? 0
        if !name.hasPrefix("b64:") { return generated(name, length) }
        // The length is that of the text.
        let content = generated(String(name.dropFirst(4)), name == "b64:big" ? 2_097_152 : 70_000)
        return Array(Base64.encode(content).utf8)
    }

    /// Content that the recording names instead of containing it.
    private static func generated(_ name: String, _ length: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        for index in 0..<(length + 31) / 32 { bytes += SHA256.hash(data: Array("\(name):\(index)".utf8)) }
        return Array(bytes.prefix(length))
    }

    // MARK: Comparing

    private static func difference(_ ours: [UInt8], _ recorded: String, of path: String)
        -> (text: String, reason: String?)?
    {
        if path.contains("feed=continuous") {
            return difference(ours, continuous: recorded).map { ($0, nil) }
        }
        let (mine, theirs) = (value(ours), value(Array(recorded.utf8)))
        func text() -> String {
            "\(excerpt(mine.map { comparable($0) })), not \(excerpt(theirs.map { comparable($0) }))"
        }
        guard let mine, let theirs else { return mine == theirs ? nil : (text(), nil) }
        if comparable(mine) == comparable(theirs) { return nil }
        let isDigest = comparable(mine, digests: false) == comparable(theirs, digests: false)
        return (
            text(),
            isDigest ? "CouchDB stores text compressed, and its digest is that of what it stores" : nil
        )
    }

    /// A feed that goes on lists the changes one a line. The scripted one ends with those that there are.
    private static func difference(_ ours: [UInt8], continuous recorded: String) -> String? {
        let rows = value(ours)?["results"]?.array ?? []
        let theirs = recorded.split(separator: "\n").compactMap { value(Array($0.utf8)) }
        let isSame =
            rows.count <= theirs.count && zip(rows, theirs).allSatisfy { comparable($0) == comparable($1) }
        return isSame ? nil : "\(excerpt(.array(rows))), not \(excerpt(.array(theirs)))"
    }

    private static func excerpt(_ value: JSONValue?) -> String {
        value.map { String("\($0)".prefix(1_000)) } ?? "-"
    }

    private static func value(_ body: [UInt8]) -> JSONValue? {
        // An answer may have no body, or one of several lines.
        (try? JSONElement(scanning: body, limits: .envelope))?.value
    }

    private static let own: Set<String> = [
        "instance_start_time", "sizes", "props", "cluster", "disk_format_version", "compact_running",
    ]

    private static func isCompressed(_ type: String) -> Bool {
        type.hasPrefix("text/") || type.hasPrefix("application/json")
    }

    /// An answer without what no two servers have in common, and without the order of what has none. `digests`: whether digests of
    /// attachments count that CouchDB compresses.
    private static func comparable(_ value: JSONValue, digests: Bool = true) -> JSONValue {
        switch value {
        case .array(let items):
            let items = items.map { comparable($0, digests: digests) }
            return .array(
                items.sorted { JSONText(canonical: $0).description < JSONText(canonical: $1).description }
            )
        case .object(let members):
            var object: JSONValue = [:]
            let isCompressed = members["content_type"]?.string.map(isCompressed) == true
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
                } else if digests || name != "digest" || !isCompressed {
                    object[name] = comparable(member, digests: digests)
                }
            }
            return object
        default: return value
        }
    }
}
