import LoveseatStorage
import NIOCore
import Synchronization

/// The last parts of feeds that several clients follow in the same form: each is made once, and shared by all that are at the same place.
final class ChangesPages: Sendable {
    /// Everything that the text of a part depends on.
    struct Key: Hashable, Sendable {
        let collection: Int64
        let position: UInt64
        let isEvents: Bool
        let allLeaves: Bool
        let withDocuments: Bool
        let options: DocumentOptions
    }

    /// A part of a feed, as it is sent.
    struct Page: Sendable {
        let text: ByteBuffer
        let count: Int
        let through: UInt64
        let isLast: Bool
    }

    /// As many as forms of feeds are followed at the same time.
    private static let kept = 32

    private struct Entry {
        let key: Key
        let version: UInt64
        let page: Page
    }

    private let entries = Mutex<[Entry]>([])

    /// A part that was made, unless something was committed since.
    ///
    /// `version`: the ``ChangeHub/version`` before the database is looked at.
    func page(_ key: Key, version: UInt64) -> Page? {
        entries.withLock { $0.first { $0.version == version && $0.key == key }?.page }
    }

    func keep(_ page: Page, as key: Key, version: UInt64) {
        entries.withLock { entries in
            entries.removeAll { $0.version != version || $0.key == key }
            if entries.count == Self.kept { entries.removeFirst() }
            entries.append(Entry(key: key, version: version, page: page))
        }
    }
}
