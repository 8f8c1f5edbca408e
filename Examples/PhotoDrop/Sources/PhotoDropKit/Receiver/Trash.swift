import Foundation
import PhotoDropCore

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// The user's trash: on Linux that of the desktops (freedesktop.org's Trash Specification 1.0, §"Trash directories").
enum Trash {
    private static let maximumNumber = 10_000

    /// Moves a file of a folder to the trash.
    ///
    /// - Throws: `disk` if there is no trash on the file's disk, or it cannot be written to. The file stays then.
    static func take(_ name: String, from folder: String, _ descriptor: Int32) throws(DropError) {
        #if canImport(Darwin)
        do {
            try FileManager.default.trashItem(at: URL(filePath: "\(folder)/\(name)"), resultingItemURL: nil)
        } catch {
            throw DropError(.disk, "cannot move \(name) to the trash: \(error.localizedDescription)")
        }
        #else
        for trash in places(for: folder) where try move(name, of: folder, descriptor, to: trash) { return }
        throw DropError(.disk, "\(folder) is on a disk without a trash: delete \(name) there yourself")
        #endif
    }

    /// The user's own trash, and that of the folder's disk.
    private static func places(for folder: String) -> [String] {
        let environment = ProcessInfo.processInfo.environment
        let data = environment["XDG_DATA_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        let home = data ?? "\(environment["HOME"] ?? "")/.local/share"
        func disk(_ path: String) -> Int? {
            let attributes = try? FileManager.default.attributesOfItem(atPath: path)
            return (attributes?[.systemNumber] as? NSNumber)?.intValue
        }
        var top = URL(filePath: folder).standardizedFileURL.path
        guard let own = disk(top) else { return ["\(home)/Trash"] }
        while top != "/" {
            let parent = URL(filePath: top).deletingLastPathComponent().path
            guard disk(parent) == own else { break }
            top = parent
        }
        return ["\(home)/Trash", "\(top == "/" ? "" : top)/.Trash-\(getuid())"]
    }

    /// Whether the file was moved; false if the trash is on another disk, or cannot be made.
    private static func move(_ name: String, of folder: String, _ descriptor: Int32, to trash: String)
        throws(DropError) -> Bool
    {
        do {
            for part in ["files", "info"] {
                try FileManager.default.createDirectory(
                    atPath: "\(trash)/\(part)",
                    withIntermediateDirectories: true,
                    attributes: [.posixPermissions: 0o700]
                )
            }
        } catch { return false }
        let path = URL(filePath: "\(folder)/\(name)").standardizedFileURL.path
        let place = path.addingPercentEncoding(withAllowedCharacters: .urlPathAllowed) ?? name
        let text = "[Trash Info]\nPath=\(place)\nDeletionDate=\(LocalTime.text(Date()))\n"
        for number in 1...maximumNumber {
            let candidate = FileName.numbered(name, number)
            let note = "\(trash)/info/\(candidate).trashinfo"
            // The note reserves the name.
            let file = open(note, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
            if file < 0, errno == EEXIST { continue }
            guard file >= 0 else { return false }
            let bytes = Array(text.utf8)
            let written = Foundation.write(file, bytes, bytes.count)
            close(file)
            if written == bytes.count,
                renameat(descriptor, name, AT_FDCWD, "\(trash)/files/\(candidate)") == 0
            {
                return true
            }
            let reason = errno
            unlink(note)
            if reason == EXDEV || written != bytes.count { return false }
            throw DropError(.disk, "cannot move \(name) to the trash: \(String(cString: strerror(reason)))")
        }
        return false
    }
}
