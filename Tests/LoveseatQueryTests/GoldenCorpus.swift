import Foundation
import LoveseatModel
import LoveseatQuery

/// The documents and questions of Tests/Fixtures/query, with the real engine's answers.
enum GoldenCorpus {
    static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Fixtures/query")

    struct Question: Sendable {
        let id: String
        let category: String
        let fields: JSONElement

        subscript(key: String) -> JSONElement? { fields[key] }

        /// The collections that it names; those of `iso` are not among the fixtures.
        var needsISO: Bool { String(decoding: fields.bytes, as: UTF8.self).contains("iso.") }
    }

    static func lines(_ file: URL) throws -> [JSONElement] {
        try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map {
            try JSONElement(parsing: Array($0.utf8))
        }
    }

    static func files(_ name: String) throws -> [URL] {
        try FileManager.default.contentsOfDirectory(
            at: folder.appending(path: name),
            includingPropertiesForKeys: nil
        ).filter { $0.pathExtension == "jsonl" }.sorted { $0.path < $1.path }
    }

    static func questions() throws -> [Question] {
        try files("queries").flatMap { try lines($0) }.map {
            Question(id: $0["id"]?.string ?? "", category: $0["category"]?.string ?? "", fields: $0)
        }
    }

    /// A document as the fixtures have it.
    struct Document {
        var id: String
        var body: JSONText
        var isDeleted = false
        var expires: Int64?
    }

    static func documents() throws -> [CollectionName: [Document]] {
        var all: [CollectionName: [Document]] = [:]
        for file in try files("data") {
            guard let name = CollectionName(path: file.deletingPathExtension().lastPathComponent) else {
                continue
            }
            all[name] = try lines(file).map {
                Document(
                    id: $0["id"]?.string ?? "",
                    body: $0["body"].map { JSONText(canonical: $0) } ?? .emptyObject,
                    isDeleted: $0["deleted"]?.bool ?? false,
                    expires: $0["expires"]?.int.map(Int64.init)
                )
            }
        }
        for (name, documents) in isoDocuments() { all[name] = documents }
        return all
    }

    /// The lists of Debian's package iso-codes, which is under the LGPL and therefore read where it is installed. The
    /// answers are of version 4.15.0; empty if the package is missing or of another version.
    static func isoDocuments() -> [CollectionName: [Document]] {
        let lists: [(file: String, key: String, name: String, id: String, count: Int)] = [
            ("iso_3166-1", "3166-1", "countries", "alpha_2", 249),
            ("iso_3166-2", "3166-2", "subdivisions", "code", 5127),
            ("iso_4217", "4217", "currencies", "alpha_3", 181),
            ("iso_15924", "15924", "scripts", "alpha_4", 182),
            ("iso_639-2", "639-2", "languages", "alpha_3", 487),
        ]
        var all: [CollectionName: [Document]] = [:]
        for list in lists {
            let file = URL(filePath: "/usr/share/iso-codes/json/\(list.file).json")
            guard let bytes = try? Data(contentsOf: file), let text = try? JSONElement(parsing: Array(bytes)),
                let entries = text[list.key], entries.count == list.count,
                let name = CollectionName(scope: "iso", name: list.name)
            else { return [:] }
            all[name] = entries.items.map { entry in
                var body = entry.value
                let id = body[list.id]?.string ?? ""
                if list.name == "subdivisions" { body["country"] = .string(String(id.prefix { $0 != "-" })) }
                return Document(id: id, body: JSONText(canonical: body))
            }
        }
        return all
    }
}
