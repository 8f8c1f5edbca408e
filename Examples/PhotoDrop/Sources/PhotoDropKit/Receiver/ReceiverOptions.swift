import Loveseat

/// The settings of a receiver. A kept session remembers most of them in its ``SessionRecord``.
package struct ReceiverOptions: Codable, Sendable {
    /// What is remembered. The record has the folder, the port and the identity itself.
    private enum CodingKeys: String, CodingKey {
        case interface, name, isAdvertised, count, idleSeconds, servesCouchDB, origins, disablesTLS
        case maximumSenders, strips, deletesFiles, allowsRecall, page, limits
    }

    /// Where photos are saved.
    package var folder = ""
    /// The TCP port; 0 for a free one.
    package var port: UInt16 = 0
    /// Whether a session that is resumed listens on its earlier port, unless ``port`` names another one.
    package var usesEarlierPort = true
    /// The name or address of the network interface; nil for all.
    package var interface: String?
    /// The receiver's name in the code; nil to leave it out.
    package var name: String?
    /// The key and certificate of a new session; nil to create them for it.
    package var identity: TLSIdentity?
    /// Whether the session is advertised on the network, by multicast DNS.
    package var isAdvertised = false
    /// Ends the session after so many photos; nil for no limit.
    package var count: Int?
    /// Ends the session after so many seconds without a connection.
    package var idleSeconds = 900.0
    /// Whether CouchDB's wire is served, too.
    package var servesCouchDB = false
    /// The origins of web pages that may send over CouchDB's wire.
    package var origins: [String] = []
    /// Whether connections are not encrypted. Only the original PhotoDrop needs that.
    package var disablesTLS = false
    /// The maximum number of connected senders. 1 reserves the session for the first sender.
    package var maximumSenders = 8
    /// Whether metadata is removed from the files that are written.
    package var strips = false
    /// Whether the file of a photo that is forgotten goes to the trash.
    package var deletesFiles = false
    /// Whether senders may take back what they have sent.
    package var allowsRecall = false
    /// Whether the session's folder stays, so that the session can be resumed.
    package var keeps = false
    package var page = PageOptions()
    package var limits = ReceiverLimits()

    package init(folder: String) { self.folder = folder }

    /// What a record of another version does not have is as it is by default.
    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        func take<T: Decodable>(_ place: inout T, _ key: CodingKeys) throws {
            if let value = try values.decodeIfPresent(T.self, forKey: key) { place = value }
        }
        interface = try values.decodeIfPresent(String.self, forKey: .interface)
        name = try values.decodeIfPresent(String.self, forKey: .name)
        count = try values.decodeIfPresent(Int.self, forKey: .count)
        try take(&isAdvertised, .isAdvertised)
        try take(&idleSeconds, .idleSeconds)
        try take(&servesCouchDB, .servesCouchDB)
        try take(&origins, .origins)
        try take(&disablesTLS, .disablesTLS)
        try take(&maximumSenders, .maximumSenders)
        try take(&strips, .strips)
        try take(&deletesFiles, .deletesFiles)
        try take(&allowsRecall, .allowsRecall)
        try take(&page, .page)
        try take(&limits, .limits)
    }

    /// Whether a session can have these settings. Those of the command line are checked there.
    var isPossible: Bool {
        let seconds = 0.001...1e9
        return seconds.contains(idleSeconds) && seconds.contains(limits.seconds) && count ?? 1 > 0
            && maximumSenders > 0 && limits.photos > 0 && limits.otherDocuments >= 0
            && limits.documentBytes > 0
    }
}

/// The page that shows a session. The command that runs the receiver serves it.
package struct PageOptions: Codable, Hashable, Sendable {
    package var isServed = true
    /// The TCP port; 0 for a free one.
    package var port: UInt16 = 0
    /// Whether browsers on the network may open it, too.
    package var isOnNetwork = false

    package init() {}
}

/// How much a session takes.
package struct ReceiverLimits: Codable, Hashable, Sendable {
    /// The largest photo, in bytes.
    package var photoBytes: UInt64 = 200 << 20
    package var photos = 10_000
    /// Documents that are not photos: batches, and what other programs send.
    package var otherDocuments = 1_000
    /// All photos together, in bytes.
    package var sessionBytes: UInt64 = 100 << 30
    /// A document without its blobs, in bytes.
    package var documentBytes = 64 << 10
    /// The space that stays free where the session's database is, in bytes.
    package var freeBytes: UInt64 = 500 << 20
    /// How long a session may last, in seconds.
    package var seconds = 86_400.0

    package init() {}
}
