import LoveseatAssertions
import LoveseatBLIP
import LoveseatModel

/// The form of the protocol over transports that negotiate none (blip.md §13). Each side of Couchbase Lite speaks its own there, so this side
/// finds out which one the peer speaks, before it names a revision.
extension ReplicationSession {
    /// Notes how the peer names revisions, if a message of an active peer shows it; false if the database failed, which ends the session.
    mutating func adoptForm(of message: Message) -> Bool {
        guard form.isOpen, let names = RevisionNaming(usedBy: message) else { return true }
        return adopt(names)
    }

    /// Asks a passive peer how it names revisions, by a subscription that it refuses in either case.
    ///
    /// A peer with versions refuses `rev-trees` (`LiteCore`/501), and a peer with trees the filter (`LiteCore`/19). So no subscription begins, and
    /// the question can be put also by a side that only pushes.
    mutating func askForForm() {
        var message = Message(.subChanges, collection: form.wireIndex(0))
        message.properties["versioning"] = RevisionNaming.trees.versioning
        message.properties["filter"] = ProtocolExtensions.noFilter
        effects.append(.send(message, then: .form))
    }

    mutating func formAnswered(_ answer: Result<Message, ReplyError>) {
        guard phase == .negotiating else { return impossible("a form is answered when \(phase)") }
        var names = RevisionNaming.trees
        if case .failure(let error) = answer, error.isUnsupported { names = .versions }
        // The database failed, which ends the session.
        guard adopt(names) else { return }
        startAll()
    }

    private mutating func adopt(_ names: RevisionNaming) -> Bool {
        form.noteNaming(names)
        if names == .trees { return true }
        guard beginVersions() else { return false }
        // A peer may have pushed documents from before its upgrade, which have no versions, before it shows one.
        for index in collections.indices { collections[index].pull.adopt(form) }
        return true
    }
}

extension RevisionNaming {
    private static let at = UInt8(ascii: "@")

    /// How the sender of a request names revisions; nil if that does not show, as in a list of documents that have no versions.
    init?(usedBy message: Message) {
        switch message.kind {
        case .subChanges:
            self = RevisionNaming.versions.isNamed(by: message.properties["versioning"]) ? .versions : .trees
        case .proposeChanges where message.properties[ProtocolExtensions.property] != nil:
            // Over versions, a Loveseat names no extensions.
            self = .trees
        case .proposeChanges:
            // The revision, and the one that the receiver is believed to have.
            guard Self.isVersionNamed(in: message, at: 1...2) else { return nil }
            self = .versions
        case .changes:
            guard Self.isVersionNamed(in: message, at: 2...2) else { return nil }
            self = .versions
        case .revision:
            guard let text = message.properties["rev"], Self.isVersion(text) else { return nil }
            self = .versions
        case .getCollections, .getCheckpoint, .setCheckpoint, .unsubChanges, .noRevision, .getAttachment,
            .proveAttachment, nil:
            return nil
        }
    }

    /// Whether an entry of a list names a version at one of these places.
    private static func isVersionNamed(in message: Message, at places: ClosedRange<Int>) -> Bool {
        // Most lists of peers with trees have no such character. One that is not valid is refused later.
        guard message.body.contains(at), let list = try? JSONElement.list(message.body) else { return false }
        return list.contains { entry in places.contains { entry[$0]?.string.map(isVersion) == true } }
    }

    private static func isVersion(_ text: String) -> Bool {
        if case .version? = try? RevisionName(first: text) { true } else { false }
    }
}

extension ReplyError {
    /// Whether the peer does not know the request.
    var isUnknownRequest: Bool { domain == "BLIP" && code == 404 }
    /// Whether the peer has no such form of what was asked for.
    fileprivate var isUnsupported: Bool { domain == "LiteCore" && code == 501 }
}
