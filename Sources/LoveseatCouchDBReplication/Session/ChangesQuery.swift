package import LoveseatModel

/// A replicator's query of a remote's feed of changes (protocol/couchdb.md §3.5).
package struct ChangesQuery: Hashable, Sendable {
    /// Which documents the remote is to leave out.
    package enum Selection: Hashable, Sendable {
        case all
        case documents([String])
        /// A Mango selector: a JSON object.
        case selector(JSONText)
        /// A function of a design document, `design/name`, with its parameters.
        case filter(name: String, parameters: [String: String])

        /// The text by which selections are told apart; nil for all.
        package var text: String? {
            switch self {
            case .all: nil
            case .documents(let ids): "documents " + ids.sorted().joined(separator: "\u{0}")
            case .selector(let selector):
                "selector " + JSONText(canonical: JSONElement(selector).value).description
            case .filter(let name, let parameters):
                "filter \(name)"
                    + parameters.sorted { $0.key < $1.key }.map { "\u{0}\($0.key)=\($0.value)" }.joined()
            }
        }
    }

    /// How many rows a replicator asks for at once.
    package static let pageSize = 500

    package var selection: Selection
    /// Where to begin, as the remote gave it; nil for the beginning.
    package var since: RemoteSequence?
    /// The maximum number of rows.
    package var limit: Int
    /// How often a waiting remote sends something, in milliseconds; nil for an answer at once.
    package var heartbeat: Int?
    /// Whether the remote accepts the query in a request with a body, which TouchDB does not.
    package var usesBody = true

    /// Whether a gateway is to list the documents that this peer may not see any more.
    package var asksRevocations = false

    package init(
        _ selection: Selection,
        since: RemoteSequence?,
        limit: Int,
        heartbeat: Int? = nil,
        usesBody: Bool = true
    ) {
        self.selection = selection
        self.since = since
        self.limit = limit
        self.heartbeat = heartbeat
        self.usesBody = usesBody
    }

    /// The request; nil if a remote that takes no body cannot be asked this.
    package var request: RemoteRequest? {
        var query: [(name: String, value: String)] = [
            ("feed", heartbeat == nil ? "normal" : "longpoll"), ("style", "all_docs"),
            ("limit", String(limit)),
        ]
        if let heartbeat { query.append(("heartbeat", String(heartbeat))) }
        if let since { query.append(("since", Self.text(of: since))) }
        switch selection {
        case .all:
            if asksRevocations { query.append(("revocations", "true")) }
            return RemoteRequest(.get, "/_changes", query)
        case .filter(let name, let parameters):
            query.append(("filter", name))
            for (name, value) in parameters.sorted(by: { $0.key < $1.key }) { query.append((name, value)) }
            return RemoteRequest(.get, "/_changes", query)
        case .documents(let ids):
            query.append(("filter", "_doc_ids"))
            let list = JSONValue.array(ids.map { .string($0) })
            guard !usesBody else {
                return RemoteRequest(.post, "/_changes", query, json: ["doc_ids": list])
            }
            let short = RemoteRequest(
                .get,
                "/_changes",
                query + [("doc_ids", JSONText(canonical: list).description)]
            )
            // If the URL would be too long, the filter is left out, and the reader of the answer skips other documents.
            guard short.query.utf8.count > RemoteRequest.maximumTarget else { return short }
            return RemoteRequest(.get, "/_changes", query.filter { $0.name != "filter" })
        case .selector(let selector):
            guard usesBody else { return nil }
            query.append(("filter", "_selector"))
            return RemoteRequest(.post, "/_changes", query, json: ["selector": JSONElement(selector).value])
        }
    }

    /// A string goes as it is, anything else as JSON text.
    private static func text(of sequence: RemoteSequence) -> String { sequence.json.string ?? sequence.text }
}
