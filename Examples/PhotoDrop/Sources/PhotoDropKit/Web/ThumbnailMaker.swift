import Foundation
import Loveseat
import PhotoDropCore
import Synchronization

/// Makes thumbnails with `vipsthumbnail`, and keeps some of them in memory.
package actor ThumbnailMaker {
    private static let cacheBytes = 16 << 20
    private static let maximumRunning = 2

    private let vips: Vips
    private let folder: String
    private var cache: [BlobDigest: [UInt8]] = [:]
    private var cachedBytes = 0
    private var running: [BlobDigest: Task<[UInt8]?, Never>] = [:]
    private var waiters: [CheckedContinuation<Void, Never>] = []
    private var active = 0

    /// Nil if `vipsthumbnail` is not installed.
    ///
    /// `folder`: for files that are needed meanwhile.
    package init?(folder: String) {
        guard let vips = Vips() else { return nil }
        self.vips = vips
        self.folder = folder
    }

    /// A JPEG of at most 320 pixels on each side, upright and without metadata; nil if none can be made.
    package func thumbnail(of blob: BlobReference, in database: Database) async -> [UInt8]? {
        if let cached = cache[blob.digest] { return cached }
        let task = running[blob.digest] ?? Task { await make(blob, in: database) }
        running[blob.digest] = task
        let made = await task.value
        running[blob.digest] = nil
        if let made, cache[blob.digest] == nil {
            if cachedBytes + made.count > Self.cacheBytes { (cache, cachedBytes) = ([:], 0) }
            cache[blob.digest] = made
            cachedBytes += made.count
        }
        return made
    }

    private func make(_ blob: BlobReference, in database: Database) async -> [UInt8]? {
        await enter()
        defer { leave() }
        let name = "\(folder)/thumb-\(blob.digest.hexadecimal)"
        defer { try? FileManager.default.removeItem(atPath: name) }
        let image: ImageInfo
        do {
            let header = try database.blobContent(blob, in: 0..<UInt64(ImageInfo.headerBytes))
            guard let info = ImageInfo(header: Array(header)), info.pixels ?? 0 <= Vips.maximumPixels,
                FileManager.default.createFile(
                    atPath: name,
                    contents: nil,
                    attributes: [.posixPermissions: 0o600]
                ),
                let file = FileHandle(forWritingAtPath: name)
            else { return nil }
            defer { try? file.close() }
            for try await piece in try database.blobPieces(blob) { try file.write(contentsOf: piece) }
            image = info
        } catch { return nil }
        return await vips.thumbnail(of: name, image, in: folder)
    }

    private func enter() async {
        guard active >= Self.maximumRunning else {
            active += 1
            return
        }
        await withCheckedContinuation { waiters.append($0) }
    }

    private func leave() {
        guard !waiters.isEmpty else {
            active -= 1
            return
        }
        waiters.removeFirst().resume()
    }
}
