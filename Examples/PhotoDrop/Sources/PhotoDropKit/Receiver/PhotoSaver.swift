import Crypto
import Foundation
import Loveseat
import PhotoDropCore

/// Writes received photos to the folder, each as soon as it is stored, and remembers which it has written.
///
/// It reads and writes files on a queue of its own, one photo after the other.
package actor PhotoSaver {
    private static let pageSize = 100
    private static let pieceBytes: UInt64 = 1 << 20
    private static let savedCollection = "saved"
    /// Set for a file that the folder had before the session wrote it.
    private static let foundKey = "found"

    private nonisolated let executor = QueueExecutor(label: "photodrop.saver")
    private let database: Database
    private let received: Loveseat.Collection
    /// One document for each photo that was written. Senders cannot see it.
    private let saved: Loveseat.Collection
    private let folder: PhotoFolder
    private let strips: Bool
    private let deletesFiles: Bool
    private let maximumBytes: UInt64
    private let hub: EventHub
    private let board: SenderBoard
    private var cursor: UInt64 = 0
    /// The names of the files by the digests of their content.
    private var files: [BlobDigest: String] = [:]
    /// The photos whose content a file is.
    private var holders: [String: Set<String>] = [:]
    private var failures: [String: String] = [:]
    private var forgotten: Set<String> = []
    /// The photos that were handled, those that were removed since among them.
    private var handled: Set<String> = []
    /// The photos whose content was in the folder already.
    private var duplicates: Set<String> = []
    /// The files that the session has written and not removed.
    private var written: Set<String> = []
    private(set) var others = 0

    package init(
        database: Database,
        folder: PhotoFolder,
        strips: Bool,
        deletesFiles: Bool,
        maximumBytes: UInt64,
        hub: EventHub,
        board: SenderBoard
    ) throws(LoveseatError) {
        self.database = database
        self.folder = folder
        self.strips = strips
        self.deletesFiles = deletesFiles
        self.maximumBytes = maximumBytes
        self.hub = hub
        self.board = board
        received = try database.defaultCollection()
        saved = try database.createCollection(name: Self.savedCollection)
    }

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// The number of photos that have arrived, duplicates included.
    package var savedCount: Int { handled.count }

    /// The number of files that the session has written.
    package var fileCount: Int { written.count }

    /// The number of photos that were not written because the folder had their content already.
    package var duplicateCount: Int { duplicates.count }

    package var failureCount: Int { failures.count }

    /// Saves what was stored since the last call.
    package func saveNew() throws {
        while true {
            let listing = DocumentListing(order: .sequence, after: .sequence(cursor), limit: Self.pageSize)
            let page = try received.documents(listing)
            guard !page.isEmpty else { return }
            for document in page {
                handle(document)
                cursor = document.sequence
            }
        }
    }

    /// Tries again to save the photos that could not be saved.
    package func retry() throws {
        for id in failures.keys.sorted() {
            guard let document = try received.document(id: id) else {
                failures[id] = nil
                continue
            }
            handle(document)
        }
    }

    /// Removes a photo from the session. Its file stays, or goes to the trash if no other photo has the same content.
    package func forget(_ id: String) throws {
        guard !forgotten.contains(id), try received.exists(id: id) else { return }
        let record = try saved.document(id: Self.savedID(id))
        if deletesFiles, let file = ownFile(of: id, record) {
            try folder.trash(file)
            written.remove(file)
            noteRemoval(of: file)
        }
        try received.purge(id: id)
        forgotten.insert(id)
        try close(id, record)
    }

    /// Removes the photos that their senders have taken back, from the session and from the folder. A file stays if somebody has changed it,
    /// or if it was there before the session.
    ///
    /// `ids`: where to look; nil for all photos that were saved.
    package func removeRecalled(among ids: [String]? = nil) throws {
        for id in try ids ?? savedIDs() where !forgotten.contains(id) {
            guard let record = try saved.document(id: Self.savedID(id)), try !received.exists(id: id) else {
                continue
            }
            if record[Self.foundKey]?.bool != true, let file = ownFile(of: id, record) {
                if folder.remove(file, ifItsDigestIs: record["content"]?.string ?? "") {
                    written.remove(file)
                }
                noteRemoval(of: file)
            }
            try close(id, record)
            // Without its tombstone, a photo that is sent again is a new one.
            do throws(LoveseatError) { try received.purge(id: id) } catch {
                guard error.code == .notFound else { throw error }
            }
        }
    }

    private func savedIDs() throws -> [String] { try saved.documents().compactMap { $0["id"]?.string } }

    /// The file of a photo; nil if other photos have the same one.
    private func ownFile(of id: String, _ record: Document?) -> String? {
        guard let file = record?["file"]?.string, holders[file, default: []].subtracting([id]).isEmpty else {
            return nil
        }
        return file
    }

    /// The same content is written again if it comes again.
    private func noteRemoval(of file: String) { files = files.filter { $0.value != file } }

    /// Ends what is known of a photo that is not in the session any more.
    private func close(_ id: String, _ record: Document?) throws {
        let file = record?["file"]?.string
        if let file { holders[file]?.remove(id) }
        if record != nil { try saved.purge(id: Self.savedID(id)) }
        failures[id] = nil
        duplicates.remove(id)
        hub.publish(.gone(id: id, file: file))
    }

    private func handle(_ document: Document) {
        if let batch = BatchDocument(document) { return board.received(batch) }
        guard let photo = ReceivedPhoto(document) else {
            others += 1
            return
        }
        do {
            guard let done = try save(photo) else {
                others += 1
                return
            }
            failures[photo.id] = nil
            handled.insert(photo.id)
            if done.isDuplicate { duplicates.insert(photo.id) }
            board.received(photo.id, bytes: done.size, from: photo.sender)
            hub.publish(.saved(done))
        } catch {
            let text = (error as? DropError)?.message ?? (error as? LoveseatError)?.message ?? "\(error)"
            guard failures.updateValue(text, forKey: photo.id) != text else { return }
            hub.publish(.failed(id: photo.id, name: shownName(of: photo), error: text))
        }
    }

    /// Saves a photo, or finds out that it was. Nil if it is not an image.
    private func save(_ photo: ReceivedPhoto) throws -> SavedPhoto? {
        let start = try database.blobContent(photo.blob, in: 0..<UInt64(ImageInfo.headerBytes))
        guard let info = ImageInfo(header: Array(start)) else { return nil }
        let known = try saved.document(id: Self.savedID(photo.id))
        if let file = known?["file"]?.string {
            files[photo.blob.digest] = file
            holders[file, default: []].insert(photo.id)
            if known?[Self.foundKey]?.bool != true { written.insert(file) }
            let isDuplicate = known?["duplicate"]?.bool ?? false
            return result(photo, info, file: file, isDuplicate: isDuplicate, isRestored: true)
        }
        // CouchDB's wire has no filter that sees the photos before they are transferred.
        guard try database.blobLength(photo.blob) ?? 0 <= maximumBytes else {
            throw DropError(.data, "it is larger than \(maximumBytes >> 20) MB, the limit of this session")
        }
        let file: String
        var isDuplicate = true
        var record: JSONObject = ["id": .string(photo.id)]
        if let (copy, first) = try copy(of: photo) {
            file = copy
            for key in ["content", Self.foundKey] { record[key] = first[key] }
        } else {
            let new = try write(photo, info)
            file = new.name
            isDuplicate = !new.isNew
            files[photo.blob.digest] = file
            record["content"] = .string(new.content)
            if new.isNew { written.insert(file) } else { record[Self.foundKey] = true }
        }
        record["file"] = .string(file)
        record["duplicate"] = .bool(isDuplicate)
        try saved.save(Document(id: Self.savedID(photo.id), record))
        holders[file, default: []].insert(photo.id)
        return result(photo, info, file: file, isDuplicate: isDuplicate)
    }

    /// The file with the content of a photo, and what is recorded of it; nil if there is none, or somebody has changed or moved it.
    private func copy(of photo: ReceivedPhoto) throws -> (file: String, record: Document)? {
        guard let file = files[photo.blob.digest],
            let record = try holders[file]?.first.flatMap({ try saved.document(id: Self.savedID($0)) })
        else { return nil }
        guard folder.has(file, withDigest: record["content"]?.string ?? "") else {
            noteRemoval(of: file)
            return nil
        }
        return (file, record)
    }

    /// IDs of other programs may have any length.
    private static func savedID(_ id: String) -> String {
        TextCoding.hexadecimal(SHA256.hash(data: Array(id.utf8)))
    }

    private func shownName(of photo: ReceivedPhoto) -> String {
        FileName.cleaned(photo.name, type: photo.type ?? .jpeg)
    }

    /// Returns the file's name, the SHA-1 of what was written, and whether the folder did not have the file already.
    ///
    /// The bytes are copied. They are read anyway, to verify the digest, and the library does not name the file of a blob, which
    /// `FICLONE` would need. A hard link to that file would be wrong: editing the photo in place would change the blob, too.
    private func write(_ photo: ReceivedPhoto, _ info: ImageInfo) throws -> (
        name: String, content: String, isNew: Bool
    ) {
        var stripper = strips ? try info.type.makeStripper() : nil
        let part = try folder.begin(photo.blob.digest.hexadecimal)
        let content: String
        do {
            var hash = Insecure.SHA1()
            var written = Insecure.SHA1()
            let length = try database.blobLength(photo.blob) ?? 0
            for start in stride(from: 0, to: length, by: Int(Self.pieceBytes)) {
                let piece = try database.blobContent(
                    photo.blob,
                    in: start..<min(start + Self.pieceBytes, length)
                )
                hash.update(data: piece)
                guard stripper != nil else {
                    try part.write(piece)
                    continue
                }
                var kept: [UInt8] = []
                try stripper?.process(piece, into: &kept)
                try part.write(kept)
                written.update(data: kept)
            }
            try stripper?.finish()
            let digest = TextCoding.hexadecimal(hash.finalize())
            // That of a blob that came compressed is of what came.
            guard photo.isCompressed || digest == photo.blob.digest.hexadecimal else {
                throw DropError(.disk, "\(photo.name) was damaged in the session's folder")
            }
            content = stripper == nil ? digest : TextCoding.hexadecimal(written.finalize())
        } catch {
            folder.discard(part)
            throw error
        }
        let name = FileName.cleaned(photo.name, type: info.type)
        let file = try folder.finish(part, name: name, date: photo.taken ?? photo.modified)
        return (file.name, content, file.isNew)
    }

    private func result(
        _ photo: ReceivedPhoto,
        _ info: ImageInfo,
        file: String,
        isDuplicate: Bool,
        isRestored: Bool = false
    ) -> SavedPhoto {
        SavedPhoto(
            id: photo.id,
            file: file,
            size: photo.blob.length ?? 0,
            type: info.type,
            digest: photo.blob.digest,
            width: photo.width ?? info.width,
            height: photo.height ?? info.height,
            sender: photo.sender,
            senderName: board.name(of: photo.sender),
            hasThumbnail: photo.thumbnail != nil,
            isDuplicate: isDuplicate,
            isRestored: isRestored
        )
    }
}
