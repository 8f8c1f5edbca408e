import Foundation
import LoveseatCouchDBReplication
import LoveseatCouchDBTesting
import LoveseatModel
import Synchronization

/// What a real CouchDB answered to its own replicator, given in the portions in which another puller asks for it.
///
/// Rows of `_bulk_get` and documents in parts are those of the recording, byte for byte. Only what holds them together is made here.
final class RecordedAnswers: Sendable {
    private struct Answer {
        let type: String
        let body: [UInt8]

        var reply: RawServer.Reply {
            let head =
                "HTTP/1.1 200 OK\r\nContent-Type: \(type)\r\nServer: CouchDB/3.5.0 (Erlang OTP/25)\r\nTransfer-Encoding: chunked\r\n\r\n"
            let chunk = Array("\(String(body.count, radix: 16))\r\n".utf8) + body
            return .bytes(Array(head.utf8) + chunk + Array("\r\n0\r\n\r\n".utf8))
        }
    }

    private let information: String
    /// Pages of changes, by the sequence after which they begin.
    private let pages: [String: String]
    private let rows: [DocumentLeaf: JSONElement]
    private let documents: [DocumentLeaf: Answer]
    /// What is answered instead of `_bulk_get`.
    private let refusal: (status: Int, body: String)?
    private let missing = Mutex<[String]>([])

    /// What was asked for and is not in the recording.
    var unknown: [String] { missing.withLock { $0 } }
    /// Whether the recording begins at the first change, and leaves nothing out.
    var isWhole: Bool { pages["0"] != nil }

    init(_ lines: [JSONElement]) throws {
        var information = ""
        var pages: [String: String] = [:]
        var rows: [DocumentLeaf: JSONElement] = [:]
        var documents: [DocumentLeaf: Answer] = [:]
        var refusal: (Int, String)?
        for line in lines where line["actor"]?.string == "couchdb-replicator" {
            guard let target = line["path"]?.string, let response = line["response"],
                let url = URLComponents(string: target.replacing(/<seq:([0-9]+)>/) { $0.output.1 })
            else { continue }
            let path = url.path.split(separator: "/").dropFirst().joined(separator: "/")
            let query = Dictionary((url.queryItems ?? []).map { ($0.name, $0.value ?? "") }) { $1 }
            let text = response["body"]?.string ?? ""
            let isBulkGet = path == "_bulk_get"
            guard line["injected"] == nil, line["status"]?.int == 200 else {
                if isBulkGet { refusal = (line["status"]?.int ?? 404, text) }
                continue
            }
            switch path {
            case "": information = text
            case "_changes" where query["feed"] == "normal" && query["filter"] == nil:
                // The last answer of several, unless nothing had changed.
                let since = query["since"] ?? ""
                if pages[since]?.contains("\"id\"") != true || text.contains("\"id\"") { pages[since] = text }
            case "_bulk_get":
                for row in try JSONElement(parsing: Array(text.utf8))["results"]?.items.map(\.self) ?? [] {
                    for found in row["docs"]?.items.map(\.self) ?? [] {
                        guard let document = found["ok"], let id = document["_id"]?.string,
                            let revision = RevisionID(document["_rev"]?.string ?? "")
                        else { continue }
                        rows[DocumentLeaf(documentID: id, revision: revision)] = document
                    }
                }
            case let id where query["open_revs"] != nil:
                for (leaf, answer) in try Self.parts(response, of: id) {
                    documents[leaf] = answer
                    // CouchDB's replicator asks for design documents one by one.
                    if rows[leaf] == nil, answer.type == "application/json" {
                        rows[leaf] = try JSONElement(parsing: answer.body)
                    }
                }
            default: break
            }
        }
        (self.information, self.pages, self.rows) = (information, pages, rows)
        (self.documents, self.refusal) = (documents, refusal)
    }

    /// The documents of an answer to `open_revs`, each as it would come alone.
    private static func parts(_ response: JSONElement, of id: String) throws -> [DocumentLeaf: Answer] {
        let header = response["headers"]?.items.first { $0[0]?.string == "Content-Type" }?[1]?.string ?? ""
        guard let type = MediaType(header), let boundary = type.boundary,
            let bytes = CouchDBRecording.bytes(response)
        else { return [:] }
        var found: [DocumentLeaf: Answer] = [:]
        var parser = MultipartParser(boundary: boundary)
        var (partType, body) = ("", [UInt8]())
        for event in try parser.receive(bytes[...]) + parser.finish().events {
            switch event {
            case .partBegan(let headers): (partType, body) = (headers["content-type"] ?? "", [])
            case .data(let data): body += data
            case .partEnded:
                guard let start = body.firstIndex(of: UInt8(ascii: "{")),
                    let text = Self.object(body[start...]),
                    let revision = RevisionID(try JSONElement(parsing: text)["_rev"]?.string ?? "")
                else { continue }
                found[DocumentLeaf(documentID: id, revision: revision)] = Answer(type: partType, body: body)
            case .ended: break
            }
        }
        return found
    }

    /// The line of JSON with which some bytes begin.
    private static func object(_ bytes: ArraySlice<UInt8>) -> [UInt8]? {
        let line = bytes.prefix { $0 != 13 && $0 != 10 }
        return line.last == UInt8(ascii: "}") ? Array(line) : nil
    }

    // MARK: Answering

    func answer(_ request: RawServer.Request) -> RawServer.Reply? {
        guard let url = URLComponents(string: request.target) else { return nil }
        let path = url.path.split(separator: "/").dropFirst().joined(separator: "/")
        let query = Dictionary((url.queryItems ?? []).map { ($0.name, $0.value ?? "") }) { $1 }
        switch (request.method, path) {
        case ("GET", "") where url.path == "/":
            return RawServer.json(
                200,
                #"{"couchdb":"Welcome","version":"3.5.0","git_sha":"11f0d3643","uuid":"2f3c36b0a3a58c3fb2e9aee6a3f0b5a1","features":["quickjs","access-ready"],"vendor":{"name":"The Apache Software Foundation"}}"#
            )
        case ("GET", ""): return RawServer.json(200, Self.sequenced(information))
        case ("GET", "_changes"): return changes(query)
        case ("POST", "_bulk_get"): return bulkGet(request.body)
        case ("PUT", _) where path.hasPrefix("_local/"):
            return RawServer.json(201, #"{"ok":true,"id":"\#(path)","rev":"0-1"}"#)
        case ("GET", _) where path.hasPrefix("_local/"):
            return RawServer.json(404, #"{"error":"not_found","reason":"missing"}"#)
        case ("POST", "_ensure_full_commit"):
            return RawServer.json(201, #"{"ok":true,"instance_start_time":"1795293865"}"#)
        case ("GET", _): return document(path, query)
        default: return unknown(request)
        }
    }

    private func unknown(_ request: RawServer.Request) -> RawServer.Reply {
        missing.withLock { $0.append("\(request.method) \(request.target)") }
        return RawServer.json(404, #"{"error":"not_found","reason":"missing"}"#)
    }

    /// Sequences as clustered CouchDBs write them.
    private static func sequenced(_ text: String) -> String {
        text.replacing(/<seq:([0-9]+)>/) { "\($0.output.1)-g1AAAACTeJzLYWBgYM+pg/==" }
    }

    private func changes(_ query: [String: String]) -> RawServer.Reply {
        let since = query["since"] ?? "0"
        let number = String(since.prefix { $0 != "-" })
        let text =
            pages[number] ?? "{\"results\":[\n\n],\n\"last_seq\":\"<seq:\(number)>\",\"pending\":0}\n"
        return Answer(type: "application/json", body: Array(Self.sequenced(text).utf8)).reply
    }

    private func bulkGet(_ body: [UInt8]) -> RawServer.Reply {
        if let refusal { return RawServer.json(refusal.status, refusal.body) }
        var results: [String] = []
        for asked in (try? JSONElement(parsing: body)["docs"]?.items.map(\.self)) ?? [] {
            let (id, text) = (asked["id"]?.string ?? "", asked["rev"]?.string ?? "")
            guard let revision = RevisionID(text),
                let row = rows[DocumentLeaf(documentID: id, revision: revision)]
            else {
                missing.withLock { $0.append("_bulk_get of \(id) \(text)") }
                continue
            }
            let name = JSONText(canonical: .string(id)).description
            let document = String(decoding: row.bytes, as: UTF8.self)
            results.append("{\"id\":\(name),\"docs\":[{\"ok\":\(document)}]}")
        }
        return RawServer.json(200, "{\"results\":[\(results.joined(separator: ","))]}\n")
    }

    private func document(_ id: String, _ query: [String: String]) -> RawServer.Reply {
        let text = query["rev"] ?? ""
        if let revision = RevisionID(text),
            let found = documents[DocumentLeaf(documentID: id, revision: revision)]
        {
            return found.reply
        }
        missing.withLock { $0.append("\(id) \(text)") }
        return RawServer.json(404, #"{"error":"not_found","reason":"missing"}"#)
    }
}
