import Foundation
import Loveseat
import PhotoDropCore

/// The photos that a sender has ready: documents in a database of its own, in a temporary folder.
package struct PhotoShelf: Sendable {
    /// A file that was not taken.
    package struct Refusal: Hashable, Sendable {
        package let name: String
        package let error: DropError

        package var reason: String { error.message }
    }

    /// How photos are changed before they are sent.
    package struct Changes: Sendable {
        /// Whether metadata is removed.
        package var strips = false
        /// The maximum of width and height; nil to leave the size as it is.
        package var maximumEdge: Int?
        /// Whether photos that the receiver's page cannot show get a thumbnail, if `vipsthumbnail` is installed.
        package var makesThumbnails = true

        package init() {}
    }

    private static let parallelFiles = 2
    /// The receiver's page makes thumbnails of smaller photos itself.
    private static let largestShown: UInt64 = 8 << 20

    package let database: Database
    package let collection: Loveseat.Collection
    package let sender: SenderID
    private let temporary: TemporaryFolder

    package init(sender: SenderID) throws {
        self.sender = sender
        temporary = try TemporaryFolder.forSender()
        do {
            database = try Database(name: "shelf", config: DatabaseConfiguration(directory: temporary.path))
            collection = try database.defaultCollection()
        } catch {
            temporary.remove()
            throw error
        }
    }

    /// Copies files into the database. The same content counts once.
    ///
    /// - Parameters:
    ///   - items: The files.
    ///   - changes: How to change the photos.
    /// - Returns: The photos in order, and the files that were refused.
    package func add(_ items: [FileFinder.Item], _ changes: Changes = Changes()) async -> (
        photos: [PhotoDocument], refusals: [Refusal]
    ) {
        var results: [Int: Result<PhotoDocument, DropError>] = [:]
        await withTaskGroup(of: (Int, Result<PhotoDocument, DropError>).self) { group in
            for (index, item) in items.enumerated() {
                if index >= Self.parallelFiles, let (done, result) = await group.next() {
                    results[done] = result
                }
                group.addTask { (index, await add(item, changes)) }
            }
            for await (done, result) in group { results[done] = result }
        }
        var photos: [PhotoDocument] = []
        var refusals: [Refusal] = []
        var seen: Set<String> = []
        for (index, item) in items.enumerated() {
            switch results[index] {
            case .success(let photo):
                if seen.insert(photo.id).inserted { photos.append(photo) }
            case .failure(let error): refusals.append(Refusal(name: item.name, error: error))
            case nil: break
            }
        }
        do { try collection.save(photos.map(\.document)) } catch {
            let reason = DropError(.disk, "\(error)")
            return ([], refusals + photos.map { Refusal(name: $0.name, error: reason) })
        }
        return (photos, refusals)
    }

    /// The error of a command that has nothing to send, because these files were refused.
    package static func nothingToSend(_ refusals: [Refusal]) -> DropError {
        let areMissing = !refusals.isEmpty && refusals.allSatisfy { $0.error.kind == .notFound }
        return DropError(areMissing ? .notFound : .partial, "there is no photo to send")
    }

    private func add(_ item: FileFinder.Item, _ changes: Changes) async -> Result<PhotoDocument, DropError> {
        switch item {
        case .refused(_, let error): return .failure(error)
        case .file(let path, let name):
            do throws(DropError) { return .success(try await photo(path, name, changes)) } catch {
                return .failure(error)
            }
        }
    }

    private func photo(_ path: String, _ name: String, _ changes: Changes) async throws(DropError)
        -> PhotoDocument
    {
        let before = try Self.stamp(path)
        guard let info = ImageInfo(header: try Self.header(path)) else {
            throw DropError(.data, "neither a photo nor a video")
        }
        var photo: PhotoDocument
        if !info.type.isVideo, let edge = changes.maximumEdge,
            max(info.width ?? .max, info.height ?? .max) > edge
        {
            let smaller = try await resized(path, info, edge)
            defer { try? FileManager.default.removeItem(atPath: smaller) }
            photo = try await store(smaller, name, changes)
        } else {
            photo = try await store(path, name, changes)
        }
        // With --strip, the document does not say when the file was made.
        if !changes.strips, photo.info.taken == nil {
            photo.modified = before.modified.map { LocalTime.universalText($0) }
        }
        guard try Self.stamp(path) == before else {
            throw DropError(.data, "it changed while it was read")
        }
        return photo
    }

    /// Puts a file and its thumbnail into the database. A photo is sent whether or not it has a thumbnail.
    private func store(_ path: String, _ name: String, _ changes: Changes) async throws(DropError)
        -> PhotoDocument
    {
        var photo = try store(path, name, strips: changes.strips)
        if changes.makesThumbnails { photo.thumbnail = await thumbnail(of: path, photo) }
        return photo
    }

    /// A thumbnail takes about a quarter of a second, so only photos get one that the page cannot show without.
    private func thumbnail(of path: String, _ photo: PhotoDocument) async -> BlobReference? {
        guard photo.size > Self.largestShown || !photo.info.type.isShownByBrowsers, !Task.isCancelled,
            let content = await Vips()?.thumbnail(of: path, photo.info, in: temporary.path),
            content.count <= ReceivedPhoto.maximumThumbnail
        else { return nil }
        return try? database.saveBlob(content, contentType: ImageType.jpeg.mediaType)
    }

    /// Puts a file into the database.
    private func store(_ path: String, _ name: String, strips: Bool) throws(DropError) -> PhotoDocument {
        guard var info = ImageInfo(header: try Self.header(path)) else {
            throw DropError(.data, "neither a photo nor a video")
        }
        let type = info.type.mediaType
        do {
            let blob: BlobReference
            if strips {
                let bytes = try stripped(path, info.type)
                blob = try database.saveBlob(bytes, contentType: type)
                // The document does not say either when the photo was taken.
                info = ImageInfo(header: Array(bytes.prefix(ImageInfo.headerBytes))) ?? info
            } else {
                blob = try database.saveBlob(fileURL: URL(fileURLWithPath: path), contentType: type)
            }
            return PhotoDocument(sender: sender, name: name, photo: blob, info: info)
        } catch {
            throw error as? DropError ?? DropError(.data, (error as? LoveseatError)?.message ?? "\(error)")
        }
    }

    /// Writes a smaller copy of a file, and returns its path.
    private func resized(_ path: String, _ info: ImageInfo, _ edge: Int) async throws(DropError) -> String {
        guard info.pixels ?? 0 <= Vips.maximumPixels else {
            throw DropError(.data, "it is too large to resize")
        }
        let ending = info.type == .png ? "png" : "jpg"
        let copy = "\(temporary.path)/\(TextCoding.hexadecimal(RandomBytes.make(8))).\(ending)"
        let options = info.type == .png ? "compression=6" : "Q=90"
        guard let vips = Vips(), await vips.shrink(path, toEdge: edge, output: copy, options: options) else {
            throw DropError(.data, "it cannot be resized")
        }
        return copy
    }

    private func stripped(_ path: String, _ type: ImageType) throws -> [UInt8] {
        var stripper = try type.makeStripper()
        let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
        defer { try? file.close() }
        var output: [UInt8] = []
        while let piece = try file.read(upToCount: 256 << 10), !piece.isEmpty {
            try stripper.process(piece, into: &output)
        }
        try stripper.finish()
        return output
    }

    private static func header(_ path: String) throws(DropError) -> [UInt8] {
        guard let file = FileHandle(forReadingAtPath: path) else {
            throw DropError(.notFound, "it cannot be read")
        }
        defer { try? file.close() }
        return Array((try? file.read(upToCount: ImageInfo.headerBytes)) ?? Data())
    }

    private static func stamp(_ path: String) throws(DropError) -> FileStatus {
        guard let status = FileStatus(path: path, followsLinks: true) else {
            throw DropError(.notFound, "it has vanished")
        }
        return status
    }

    /// Closes the database, and removes everything.
    package func remove() async {
        try? await database.close()
        temporary.remove()
    }
}

extension FileFinder.Item {
    package var name: String {
        switch self {
        case .file(_, let name), .refused(let name, _): name
        }
    }
}
