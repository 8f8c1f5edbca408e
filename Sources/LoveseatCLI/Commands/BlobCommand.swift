import ArgumentParser
import Foundation
import Loveseat

struct BlobCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "blob",
        abstract: "Store blobs in documents, and read them.",
        subcommands: [Put.self, Get.self]
    )

    struct Put: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Store a file as a blob in a property of a document.",
            discussion: "EXAMPLE\n  loveseat blob put trips tower photo tower.jpg --type image/jpeg"
        )

        @OptionGroup var options: CollectionOptions
        @Argument(
            help: "The document's ID. The document is created if it does not exist.",
            completion: .documentID
        )
        var id: String
        @Argument(help: "The property.")
        var property: String
        @Argument(help: "The file.", completion: .file())
        var file: String
        @Option(help: "The content's media type.")
        var type: String?

        func run() throws {
            // Says why a file cannot be read, before anything is created.
            _ = try FileSource(file)
            guard type?.utf8.count ?? 0 <= BlobReference.maximumContentType else {
                throw LoveseatError(
                    .invalidParameter,
                    "--type is longer than \(BlobReference.maximumContentType) bytes"
                )
            }
            try options.creating { try put(into: $1, of: $0) }
        }

        private func put(into collection: Loveseat.Collection, of database: Database) throws {
            let blob = try database.saveBlob(fileURL: URL(filePath: file), contentType: type)
            let stored = try collection.document(id: id)
            var document = stored ?? Document(id: id)
            document[property] = blob.json
            try LoveseatError.ofInput { try collection.save(&document) }
            if stored == nil {
                let hint = NearestName.question(collection.probablyMeant(by: id))
                Output.notice("loveseat: created the document \"\(id)\"\(hint)")
            }
            try Output.standard.line(blob.digest.text)
        }
    }

    struct Get: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Write a document's blob to a file, or to standard output.",
            discussion: """
                For an attachment that a REST client or a 1.x app made, use its name instead of a property.

                EXAMPLE
                  loveseat blob get trips tower photo > tower.jpg
                """
        )

        @OptionGroup var options: CollectionOptions
        @Argument(help: "The document's ID.", completion: .documentID)
        var id: String
        @Argument(help: "The property, or an attachment's name.")
        var property: String
        @Argument(
            help: "The file, which must not exist yet. The default is standard output.",
            completion: .file()
        )
        var file: String?
        @Flag(help: "Replace the file if it exists.")
        var force = false

        func run() async throws {
            let (database, _, document) = try options.document(id)
            guard let blob = document.blob(property) ?? document.attachment(property) else {
                let blobs = document.properties.map(\.key).filter { document.blob($0) != nil }
                throw LoveseatError.absent(
                    "\"\(property)\" of \"\(id)\" is not a blob",
                    nearest: NearestName.nearest(to: property, among: blobs)
                )
            }
            if let damage = try database.blobs.damage(of: blob.digest) {
                throw LoveseatError(
                    .corruptData,
                    "\"\(property)\" of \"\(id)\": \(damage); `check` lists all that is damaged"
                )
            }
            let pieces = try database.blobPieces(blob)
            do { try await write(pieces) } catch let error as LoveseatError where error.code == .corruptData {
                throw LoveseatError(.corruptData, "\"\(property)\" of \"\(id)\": \(error.message)")
            }
            try await database.close()
        }

        private func write(_ pieces: BlobPieces) async throws {
            guard let file else {
                for try await piece in pieces { try Output.standard.raw(piece) }
                return
            }
            var status = stat()
            // A device or a pipe has no content to lose.
            let isSpecial = stat(file, &status) == 0 && status.st_mode & S_IFMT != S_IFREG
            let mode = force || isSpecial ? O_TRUNC : O_EXCL
            let descriptor = open(file, O_WRONLY | O_CREAT | mode | O_CLOEXEC, 0o666)
            guard descriptor >= 0 else { throw Self.failure(file) }
            defer { close(descriptor) }
            do {
                for try await piece in pieces { try Output.write(all: Array(piece), to: descriptor, file) }
            } catch {
                // A part of a blob must not look like all of it.
                if mode == O_EXCL { unlink(file) }
                throw error
            }
        }

        private static func failure(_ file: String) -> LoveseatError {
            let number = errno
            if number == EEXIST {
                return LoveseatError(.cannotCreate, "\(file) exists already: use --force to replace it")
            }
            let message = "cannot write \(file): \(String(cString: strerror(number)))"
            // A full or read-only disk, or a missing permission, has its own code.
            let isKnown = [EACCES, EPERM, ENOSPC, EROFS, EIO].contains(number)
            return LoveseatError(isKnown ? .init(Int(number), domain: .posix) : .cannotCreate, message)
        }
    }
}
