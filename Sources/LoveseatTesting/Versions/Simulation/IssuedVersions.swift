import LoveseatModel

/// Checks that a Loveseat issues each of its versions once: no two of its documents have a state of the same name.
final class IssuedVersions {
    private var documents: [Version: String] = [:]
    /// By source and document, in the order in which they came up.
    private var lists: [SourceID: [(id: String, version: Version)]] = [:]
    private var reported: Set<Version> = []

    /// A database has a state of a document that it made. Returns a sentence if a state of another document has the same version.
    func note(_ version: Version, of id: String) -> String? {
        guard let first = documents[version] else {
            documents[version] = id
            lists[version.source, default: []].append((id, version))
            return nil
        }
        guard first != id, reported.insert(version).inserted else { return nil }
        return "ISSUED TWICE \(version): for \(first) and for \(id)"
    }

    /// The versions by a source.
    func versions(by source: SourceID) -> [Version] { lists[source]?.map(\.version) ?? [] }

    /// The version of a document that its author made before another one; nil if there is none.
    func previous(_ version: Version, of id: String) -> Version? {
        lists[version.source]?.filter { $0.id == id && $0.version < version }.map(\.version).max()
    }
}
