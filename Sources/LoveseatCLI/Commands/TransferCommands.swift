import ArgumentParser
import Foundation
import Loveseat

struct Import: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Import documents from JSON.",
        discussion: """
            The file is a JSON array, JSON lines (one object per line), or a JSON object with an array that --array \
            names. "-" is standard input. A document's ID is its --id-field, by default "_id" or "id"; without \
            one it gets a random ID. The database and the collection are created if they do not exist.

            Documents are saved in transactions of a thousand. If one is refused, those saved before it stay, unless --atomic \
            is used. A document may have at most 20 MB of JSON and 128 levels, and no key twice in an object.

            EXAMPLES
              loveseat import geo iso_3166-1.json --array 3166-1 --id-field alpha_3 --collection iso.countries
              loveseat export geo | loveseat import copy -
            """
    )

    @OptionGroup var options: CollectionOptions
    @Argument(help: "The file; - for standard input.")
    var file: String
    @Option(help: "The property that is the document's ID.")
    var idField: String?
    @Option(help: "The member of a JSON object that contains the array of documents.")
    var array: String?
    @Flag(help: "Save no documents if one of them is refused.")
    var atomic = false
    @Flag(help: "Print the number of saved documents as a JSON object.")
    var json = false

    func run() throws {
        let source = try DocumentSource(file: file, array: array)
        let (database, collection) = try options.create()
        var importer = Importer(database: database, collection: collection, idField: idField)
        do {
            if atomic {
                try database.write { transaction in
                    importer.transaction = transaction
                    defer { importer.transaction = nil }
                    try Self.add(source, to: &importer)
                }
            } else {
                try Self.add(source, to: &importer)
            }
        } catch let error as LoveseatError {
            let kept = atomic ? 0 : importer.count
            try database.close()
            if json { try Output.standard.line(["documents": JSONValue(kept)]) }
            let outcome =
                kept == 0
                ? "nothing was saved"
                : "\(kept.counted("document")) before it \(kept == 1 ? "was" : "were") saved"
            throw LoveseatError(error.code, "\(error.message); \(outcome)")
        }
        try database.close()
        if json {
            try Output.standard.line(["documents": JSONValue(importer.count)])
        } else {
            Output.remark(importer.count.counted("document"))
        }
    }

    private static func add(_ source: DocumentSource, to importer: inout Importer) throws {
        try source.forEach { try importer.add($0, at: $1) }
        try importer.finish()
    }
}

struct Export: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print all documents as JSON lines, in order of their IDs.",
        discussion: """
            Each line is a document with its ID as "_id", and "_collection" if that is not the default one. The content \
            of a blob is in lines before the first document that refers to it: its digest as "_blob", and up to 192 kB as \
            "content", in Base64. Equal databases give equal text, which `import` reads.
            """
    )

    @OptionGroup var argument: DatabaseArgument
    @Option(name: [.short, .long], help: "Only this collection.")
    var collection: String?
    @Flag(
        help:
            "Leave out the content of blobs. Documents that refer to blobs can then be read, but not imported."
    )
    var noBlobs = false

    func run() async throws {
        let database = try argument.read()
        let wanted = try collection?.collectionName.fullName
        var blobs: Swift.Set<BlobDigest> = []
        for scope in try database.scopes() {
            for collection in try scope.collections() where wanted == nil || wanted == collection.fullName {
                try await export(collection, &blobs)
            }
        }
        try await database.close()
    }

    private func export(_ collection: Loveseat.Collection, _ blobs: inout Swift.Set<BlobDigest>) async throws
    {
        let isDefault = collection.fullName == CollectionName.default.fullName
        let place = isDefault ? "" : ",\"_collection\":\(JSONValue.string(collection.fullName))"
        for try await document in collection.documentStream() {
            if !noBlobs {
                for digest in document.blobDigests where blobs.insert(digest).inserted {
                    try export(digest, of: collection.database)
                }
            }
            let body = document.json.canonical.bytes
            var line = Array("{\"_id\":\(JSONValue.string(document.id))\(place)".utf8)
            if body.count > 2 { line.append(UInt8(ascii: ",")) }
            line += body.dropFirst()
            try Output.standard.stored(line)
        }
    }

    private func export(_ digest: BlobDigest, of database: Database) throws {
        guard var pieces = try database.blobPieces(digest, pieceBytes: 192 << 10) else {
            return Output.remark("loveseat: blob \(digest) is missing: run `check`")
        }
        repeat {
            let piece = try pieces.read() ?? Data()
            try Output.standard.line([
                "_blob": .string(digest.text), "content": .string(piece.base64EncodedString()),
            ])
        } while !pieces.isAtEnd
    }
}

struct BlobCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "blob",
        abstract: "Store blobs in documents, and read them.",
        subcommands: [Put.self, Get.self]
    )

    struct Put: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Store a file as a blob in a property of a document.",
            discussion: "EXAMPLE: loveseat blob put trips tower photo tower.jpg --type image/jpeg"
        )

        @OptionGroup var options: CollectionOptions
        @Argument(help: "The document's ID. The document is created if it does not exist.")
        var id: String
        @Argument(help: "The property.")
        var property: String
        @Argument(help: "The file.")
        var file: String
        @Option(help: "The content's media type.")
        var type: String?

        func run() throws {
            let (database, collection) = try options.create()
            let blob = try database.saveBlob(fileURL: URL(filePath: file), contentType: type)
            var document = try collection.document(id: id) ?? Document(id: id)
            document[property] = blob.json
            try collection.save(&document)
            try Output.standard.line(blob.digest.text)
            try database.close()
        }
    }

    struct Get: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Write a document's blob to a file, or to standard output.",
            discussion: """
                For an attachment that a REST client or a 1.x app made, use its name instead of a property.

                EXAMPLE: loveseat blob get trips tower photo > tower.jpg
                """
        )

        @OptionGroup var options: CollectionOptions
        @Argument(help: "The document's ID.")
        var id: String
        @Argument(help: "The property, or an attachment's name.")
        var property: String
        @Argument(help: "The file. The default is standard output.")
        var file: String?

        func run() async throws {
            let (database, _, document) = try options.document(id)
            guard let blob = document.blob(property) ?? document.attachment(property) else {
                throw LoveseatError(.notFound, "\"\(property)\" of \"\(id)\" is not a blob")
            }
            let pieces = try database.blobPieces(blob)
            if let file {
                guard FileManager.default.createFile(atPath: file, contents: nil),
                    let handle = FileHandle(forWritingAtPath: file)
                else { throw LoveseatError(.cantOpenFile, "cannot write \(file)") }
                for try await piece in pieces { try handle.write(contentsOf: piece) }
                try handle.close()
            } else {
                for try await piece in pieces { try Output.standard.raw(piece) }
            }
            try await database.close()
        }
    }
}
