import Foundation
import Loveseat

/// The calls of `Loveseat`.
struct NativeSide {
    private let database: Database
    private let collection: Collection
    private let sights: [Sight]
    private let read: [Document]

    init(folder: String, _ sights: [Sight]) throws {
        self.sights = sights
        database = try Database(name: "native", config: DatabaseConfiguration(directory: folder))
        collection = try database.createCollection(name: "sights")
        for sight in sights { try collection.save(Self.document(sight)) }
        read = try sights.compactMap { [collection] in try collection.document(id: $0.id) }
    }

    private static func document(_ sight: Sight) -> Document {
        var document = Document(id: sight.id)
        document["name"] = .string(sight.name)
        document["city"] = .string(sight.city)
        document["likes"] = JSONValue(sight.likes)
        document["rating"] = JSONValue(sight.rating)
        document["open"] = .bool(sight.isOpen)
        document["text"] = .string(sight.text)
        return document
    }

    private func stored(_ sight: Sight) throws -> Document {
        guard let document = try collection.document(id: sight.id) else { throw Missing(what: sight.id) }
        return document
    }

    var work: [Work: () throws -> Void] {
        [
            .save: saveNew, .update: update,
            .get: { for sight in sights { _ = try stored(sight) } },
            .getAndRead: {
                for sight in sights where try stored(sight)["name"]?.string == nil {
                    throw Missing(what: "name")
                }
            },
            .getString: {
                for document in read {
                    for _ in 0..<Work.getString.repetitions where document["text"]?.string == nil {
                        throw Missing(what: "text")
                    }
                }
            },
            .getAll: getAll,
            .setValue: { for sight in sights { _ = Self.document(sight) } },
            .toJSON: {
                for sight in sights where try stored(sight).json.description.isEmpty {
                    throw Missing(what: "text")
                }
            },
            .query: query,
            .inBatch: {
                try database.write { transaction in
                    for sight in sights { try transaction.save(Self.document(sight), in: collection) }
                }
            },
            .blob: blob, .delete: delete,
        ]
    }

    private func saveNew() throws {
        for sight in sights {
            var document = Self.document(sight)
            try collection.save(&document)
        }
    }

    private func update() throws {
        for sight in sights {
            var document = try stored(sight)
            document["likes"] = JSONValue(sight.likes + 1)
            try collection.save(&document)
        }
    }

    private func getAll() throws {
        for document in read {
            for _ in 0..<Work.getAll.repetitions {
                guard document["name"]?.string != nil, document["city"]?.string != nil,
                    document["likes"]?.int != nil, document["rating"]?.double != nil,
                    document["open"]?.bool != nil, document["text"]?.string != nil
                else { throw Missing(what: "a property") }
            }
        }
    }

    private func query() throws {
        let query = try database.createQuery("SELECT name, likes FROM sights")
        var rows = 0
        for row in try query.execute() where row["name"]?.string != nil && row["likes"]?.int != nil {
            rows += 1
        }
        guard rows == sights.count else { throw Missing(what: "rows") }
    }

    private func blob() throws {
        for sight in sights {
            var document = Document(id: "photo \(sight.id)")
            document["photo"] = try database.saveBlob(sight.photo, contentType: "image/jpeg").json
            try collection.save(&document)
            guard let blob = document.blob("photo"), try database.blobContent(blob).count == sight.photo.count
            else {
                throw Missing(what: "a blob")
            }
        }
        try database.write { for sight in sights { try $0.purge(id: "photo \(sight.id)", in: collection) } }
    }

    private func delete() throws {
        var documents = sights.map { Document(id: "deleted \($0.id)") }
        try database.write {
            for index in documents.indices { try $0.save(&documents[index], in: collection) }
        }
        for document in documents { try collection.delete(document) }
        try database.write { for document in documents { try $0.purge(id: document.id, in: collection) } }
    }
}
