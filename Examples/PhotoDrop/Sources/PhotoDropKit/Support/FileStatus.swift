import Foundation

/// What the file system says about a file.
struct FileStatus: Hashable {
    enum Kind: Hashable {
        case file, folder, other
    }

    let kind: Kind
    let size: Int
    /// When it was written.
    let modified: Date?

    /// Nil if the file does not exist or cannot be looked at.
    init?(path: String, followsLinks: Bool) {
        let target =
            followsLinks
            ? URL(filePath: path).resolvingSymlinksInPath().path(percentEncoded: false) : path
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: target) else { return nil }
        kind =
            switch attributes[.type] as? FileAttributeType {
            case .typeRegular: .file
            case .typeDirectory: .folder
            default: .other
            }
        size = (attributes[.size] as? NSNumber)?.intValue ?? 0
        modified = attributes[.modificationDate] as? Date
    }
}
