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

    private nonisolated let executor = QueueExecutor(label: "photodrop.saver")
    private let database: Database
    private let received: Loveseat.Collection
    /// One document for each photo that was written. Senders cannot see it.
    private let saved: Loveseat.Collection
    private let folder: PhotoFolder
    private let strips: Bool
    private let maximumBytes: UInt64
    private let hub: EventHub
    private let board: SenderBoard
    private var cursor: UInt64 = 0
    /// The names of the files by the digests of their content.
    private var files: [BlobDigest: String] = [:]
    private var failures: [String: String] = [:]
    private var forgotten: Set<String> = []
    /// The number of photos that were handled.
    package private(set) var savedCount = 0
    private(set) var others = 0

    package init(
        database: Database,
        folder: PhotoFolder,
        strips: Bool,
        maximumBytes: UInt64,
        hub: EventHub,
        board: SenderBoard
    ) throws(LoveseatError) {
        self.database = database
        self.folder = folder
        self.strips = strips
        self.maximumBytes = maximumBytes
        self.hub = hub
        self.board = board
        received = try database.defaultCollection()
        saved = try database.createCollection(name: Self.savedCollection)
    }

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

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

    /// Removes a photo from the session. Its file stays.
    package func forget(_ id: String) throws {
        guard !forgotten.contains(id), try received.exists(id: id) else { return }
        try received.purge(id: id)
        forgotten.insert(id)
        failures[id] = nil
        hub.publish(.gone(id: id))
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
            savedCount += 1
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
            let isDuplicate = known?["duplicate"]?.bool ?? false
            return result(photo, info, file: file, isDuplicate: isDuplicate, isRestored: true)
        }
        // CouchDB's wire has no filter that sees the photos before they are transferred.
        guard try database.blobLength(photo.blob) ?? 0 <= maximumBytes else {
            throw DropError(.data, "it is larger than the \(maximumBytes >> 20) MB that are taken")
        }
        let copy = files[photo.blob.digest]
        let file: String
        if let copy {
            file = copy
        } else {
            file = try write(photo, info)
            files[photo.blob.digest] = file
        }
        let record: JSONObject = ["file": .string(file), "duplicate": .bool(copy != nil)]
        try saved.save(Document(id: Self.savedID(photo.id), record))
        return result(photo, info, file: file, isDuplicate: copy != nil)
    }

    /// IDs of other programs may have any length.
    private static func savedID(_ id: String) -> String {
        TextCoding.hexadecimal(SHA256.hash(data: Array(id.utf8)))
    }

    private func shownName(of photo: ReceivedPhoto) -> String {
        FileName.cleaned(photo.name, type: .jpeg)
    }

    private func write(_ photo: ReceivedPhoto, _ info: ImageInfo) throws -> String {
        var stripper = strips ? try info.type.makeStripper() : nil
        let part = try folder.begin(photo.blob.digest.hexadecimal)
        do {
            var hash = Insecure.SHA1()
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
            }
            try stripper?.finish()
            guard TextCoding.hexadecimal(hash.finalize()) == photo.blob.digest.hexadecimal else {
                throw DropError(.disk, "\(photo.name) was damaged in the session's folder")
            }
        } catch {
            folder.discard(part)
            throw error
        }
        let name = FileName.cleaned(photo.name, type: info.type)
        return try folder.finish(part, name: name, taken: photo.taken)
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
