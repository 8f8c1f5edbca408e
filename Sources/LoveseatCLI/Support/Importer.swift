import Foundation
import Loveseat

/// Where documents to be imported come from.
struct DocumentSource {
    private let bytes: [UInt8]
    private let name: String
    private let array: String?

    init(file: String, array: String?) throws {
        name = file == "-" ? "standard input" : file
        self.array = array
        if file == "-" {
            bytes = Array(FileHandle.standardInput.readDataToEndOfFile())
        } else {
            guard let data = FileManager.default.contents(atPath: file) else {
                throw LoveseatError(.cantOpenFile, "cannot read \(file)")
            }
            bytes = Array(data)
        }
    }

    private static let limits = JSONLimits(maximumBytes: .max)

    /// Calls `body` with each document and where it is, for messages.
    func forEach(_ body: (JSONElement, String) throws -> Void) throws {
        let first = bytes.first { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }
        if first == UInt8(ascii: "{"), array == nil { return try forEachLine(body) }
        guard first != nil else { return }
        let root: JSONElement
        do throws(JSONError) { root = try JSONElement(parsing: bytes, limits: Self.limits) } catch {
            throw LoveseatError(.invalidJSON, "\(name): \(error)")
        }
        guard let items = array.map({ root[$0] }) ?? root, items.kind == .array else {
            throw LoveseatError(.invalidParameter, "\(name) has no array\(array.map { " \"\($0)\"" } ?? "")")
        }
        for (index, item) in items.items.enumerated() { try body(item, "\(name), item \(index + 1)") }
    }

    private func forEachLine(_ body: (JSONElement, String) throws -> Void) throws {
        var number = 0
        for line in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            number += 1
            guard line.contains(where: { ![0x20, 0x09, 0x0D].contains($0) }) else { continue }
            let element: JSONElement
            do throws(JSONError) {
                element = try JSONElement(parsing: Array(line), limits: Self.limits)
            } catch {
                let advice = number == 1 ? "; if the file is one object, name its array with --array" : ""
                throw LoveseatError(.invalidJSON, "\(name), line \(number): \(error)\(advice)")
            }
            try body(element, "\(name), line \(number)")
        }
    }
}

/// Saves documents, a thousand in a transaction.
struct Importer {
    private static let batch = 1_000

    let database: Database
    let collection: Loveseat.Collection
    let idField: String?
    private var waiting: [(Loveseat.Collection, Document)] = []
    private var others: [String: Loveseat.Collection] = [:]
    private var count = 0

    init(database: Database, collection: Loveseat.Collection, idField: String?) {
        self.database = database
        self.collection = collection
        self.idField = idField
    }

    mutating func add(_ element: JSONElement, at place: String) throws {
        guard element.kind == .object else {
            throw LoveseatError(.invalidJSON, "\(place): a document must be a JSON object")
        }
        count += 1
        var properties = element.value.object ?? [:]
        let id: String
        if let idField {
            guard let value = Self.text(properties[idField]) else {
                throw LoveseatError(.badDocID, "\(place): there is no text or number in \"\(idField)\"")
            }
            id = value
        } else if let value = Self.text(properties.removeValue(forKey: "_id")) {
            id = value
        } else {
            id = Self.text(properties["id"]) ?? String(count)
        }
        let target = try collection(properties.removeValue(forKey: "_collection")?.string)
        waiting.append((target, Document(id: id, properties)))
        if waiting.count == Self.batch { try save() }
    }

    mutating func finish() throws -> Int {
        try save()
        return count
    }

    private mutating func collection(_ path: String?) throws -> Loveseat.Collection {
        guard let path else { return collection }
        if let known = others[path] { return known }
        let name = try path.collectionName
        let made = try database.createCollection(name: name.name, scope: name.scope)
        others[path] = made
        return made
    }

    private mutating func save() throws {
        try database.inBatch { for (collection, document) in waiting { try collection.save(document) } }
        waiting = []
    }

    private static func text(_ value: JSONValue?) -> String? { value?.string ?? value?.int.map(String.init) }
}
