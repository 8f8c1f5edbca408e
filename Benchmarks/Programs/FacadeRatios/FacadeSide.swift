import CouchbaseLiteSwift
import Foundation

/// The calls of `CouchbaseLiteSwift`.
struct FacadeSide {
    private let database: Database
    private let collection: CouchbaseLiteSwift.Collection
    private let sights: [Sight]
    private let read: [Document]

    init(folder: String, _ sights: [Sight]) throws {
        self.sights = sights
        var config = DatabaseConfiguration()
        config.directory = folder
        database = try Database(name: "facade", config: config)
        collection = try database.createCollection(name: "sights")
        for sight in sights { try collection.save(document: Self.document(sight)) }
        read = try sights.compactMap { [collection] in try collection.document(id: $0.id) }
    }

    private static func document(_ sight: Sight) -> MutableDocument {
        MutableDocument(id: sight.id)
            .setValue(sight.name, forKey: "name")
            .setValue(sight.city, forKey: "city")
            .setValue(sight.likes, forKey: "likes")
            .setValue(sight.rating, forKey: "rating")
            .setValue(sight.isOpen, forKey: "open")
            .setValue(sight.text, forKey: "text")
    }

    private func stored(_ sight: Sight) throws -> Document {
        guard let document = try collection.document(id: sight.id) else { throw Missing(what: sight.id) }
        return document
    }

    var work: [Work: () throws -> Void] {
        [
            .save: { for sight in sights { try collection.save(document: Self.document(sight)) } },
            .update: update,
            .get: { for sight in sights { _ = try stored(sight) } },
            .getAndRead: {
                for sight in sights where try stored(sight).string(forKey: "name") == nil {
                    throw Missing(what: "name")
                }
            },
            .getString: {
                for document in read {
                    for _ in 0..<Work.getString.repetitions where document.string(forKey: "text") == nil {
                        throw Missing(what: "text")
                    }
                }
            },
            .getAll: getAll,
            .setValue: { for sight in sights { _ = Self.document(sight) } },
            .toJSON: {
                for sight in sights where try stored(sight).toJSON().isEmpty { throw Missing(what: "text") }
            },
            .query: query,
            .inBatch: {
                try database.inBatch {
                    for sight in sights { try collection.save(document: Self.document(sight)) }
                }
            },
            .blob: blob, .delete: delete,
        ]
    }

    private func update() throws {
        for sight in sights {
            let document = try stored(sight).toMutable()
            document.setValue(sight.likes + 1, forKey: "likes")
            try collection.save(document: document)
        }
    }

    private func getAll() throws {
        for document in read {
            for _ in 0..<Work.getAll.repetitions {
                guard document.string(forKey: "name") != nil, document.string(forKey: "city") != nil,
                    document.int(forKey: "likes") >= 0, document.double(forKey: "rating") > 0,
                    document.boolean(forKey: "open") || document.contains(key: "open"),
                    document.string(forKey: "text") != nil
                else { throw Missing(what: "a property") }
            }
        }
    }

    private func query() throws {
        let query = try database.createQuery("SELECT name, likes FROM sights")
        var rows = 0
        for row in try query.execute()
        where row.string(forKey: "name") != nil && row.int(forKey: "likes") >= 0 {
            rows += 1
        }
        guard rows == sights.count else { throw Missing(what: "rows") }
    }

    private func blob() throws {
        for sight in sights {
            let document = MutableDocument(id: "photo \(sight.id)")
            document.setBlob(Blob(contentType: "image/jpeg", data: sight.photo), forKey: "photo")
            try collection.save(document: document)
            guard document.blob(forKey: "photo")?.content?.count == sight.photo.count else {
                throw Missing(what: "a blob")
            }
        }
        try database.inBatch { for sight in sights { try collection.purge(id: "photo \(sight.id)") } }
    }

    private func delete() throws {
        let documents = sights.map { MutableDocument(id: "deleted \($0.id)") }
        try database.inBatch { for document in documents { try collection.save(document: document) } }
        for document in documents { try collection.delete(document: document) }
        try database.inBatch { for document in documents { try collection.purge(document: document) } }
    }
}
