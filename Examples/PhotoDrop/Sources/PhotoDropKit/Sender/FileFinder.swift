import Foundation
import PhotoDropCore

/// Expands the files and folders that are to be sent.
package enum FileFinder {
    /// A file, or why it cannot be sent.
    package enum Item: Hashable, Sendable {
        case file(path: String, name: String)
        case refused(name: String, DropError)
    }

    /// Returns files as they are named, and the files of folders and their subfolders sorted by name. Links in folders are not followed, and
    /// hidden files are left out.
    package static func expand(_ paths: [String]) -> [Item] { paths.flatMap { expand($0) } }

    private static func expand(_ path: String) -> [Item] {
        guard let status = FileStatus(path: path, followsLinks: true) else {
            return [.refused(name: path, DropError(.notFound, String(cString: strerror(errno))))]
        }
        return status.kind == .folder ? folder(path) : [file(path, status)]
    }

    private static func folder(_ path: String) -> [Item] {
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: path) else {
            return [.refused(name: path, DropError(.notFound, "the folder cannot be read"))]
        }
        return names.sorted().filter { !$0.hasPrefix(".") }.flatMap { name -> [Item] in
            let child = "\(path)/\(name)"
            guard let status = FileStatus(path: child, followsLinks: false) else { return [] }
            switch status.kind {
            case .folder: return folder(child)
            case .file: return [file(child, status)]
            case .other: return []
            }
        }
    }

    private static func file(_ path: String, _ status: FileStatus) -> Item {
        let name = path.split(separator: "/").last.map(String.init) ?? path
        guard status.kind == .file else { return .refused(name: name, DropError(.data, "not a file")) }
        return .file(path: path, name: name)
    }
}
