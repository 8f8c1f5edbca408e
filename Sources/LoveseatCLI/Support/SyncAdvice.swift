import Foundation
import Loveseat

/// The ways out of errors of replications.
extension SyncOptions {
    /// Adds the options that help. `isPaired`: whether the database is paired with any peer.
    func advised(_ error: LoveseatError, _ configuration: ReplicatorConfiguration, isPaired: Bool)
        -> LoveseatError
    {
        let error = error.namingOptions
        if error.code == .httpNotFound, let hint = databaseHint(error.message) {
            return LoveseatError(error.code, hint)
        }
        if error.remedy == .choosingDatabases {
            return LoveseatError(
                error.code,
                "\(error.message) with --collections, as in --collections _default,travel.trips=trips"
            )
        }
        if error.code == .httpNotFound, error.collections != nil || configuration.collections.count > 1,
            peer.collections.isEmpty
        {
            return LoveseatError(
                error.code,
                "\(error.message); if the peer has only some of the collections, name them with --collections"
            )
        }
        if error.code == .httpNotFound, case .lacks = error.collections, peer.isKnownToPeer {
            return LoveseatError(
                error.code,
                "\(error.message): the peer has no such collection, or hides it: \(peer.rightsHint)"
            )
        }
        if error.code == .httpAuthRequired, peer.credentials.user == nil, peer.session == nil {
            let hint =
                peer.paired
                ? "" : "; --user names the user, and --paired uses a pairing with `serve --paired`"
            return LoveseatError(error.code, "\(error.message)\(hint)")
        }
        if error.code == .tlsCertUntrusted, peer.find != nil, !peer.paired, isPaired {
            return LoveseatError(
                error.code,
                "\(error.message); if it is the peer that this database is paired with, add --paired"
            )
        }
        if error.remedy == .creatingDatabase, configuration.replicatorType != .pull {
            return LoveseatError(error.code, "\(error.message) with --create-target")
        }
        if error.remedy == .adoptingChanges, !asThisUser {
            return LoveseatError(error.code, "\(error.message) with --as-this-user")
        }
        // Peers give these reasons in words alone.
        if error.code == .httpForbidden, error.message.contains("you have no rights") {
            return LoveseatError(error.code, "\(error.message): \(peer.rightsHint)")
        }
        if error.code == .httpForbidden, let hint = Self.oneWayHint(error.message) {
            return LoveseatError(error.code, "\(error.message); \(hint)")
        }
        guard error.code == .init(10400) else { return error }
        if peer.collections.isEmpty, error.message.contains("default collection is not configured") {
            return LoveseatError(
                .invalidParameter,
                "\(error.message): name the collections that the peer has with --collections"
            )
        }
        guard continuous, !peer.docIds.isEmpty else { return error }
        return LoveseatError(
            .invalidParameter,
            "\(error.message): a gateway accepts --doc-ids only without --continuous; leave out one of them"
        )
    }

    /// The error of a URL with another database than the one that the peer serves, by the words of its refusal.
    private func databaseHint(_ message: String) -> String? {
        guard let match = message.firstMatch(of: #/not found: use /(.+)/_blipsync/#),
            let url = peer.url.flatMap({ URL(string: $0) }), let scheme = url.scheme, let host = url.host()
        else { return nil }
        let place =
            "\(scheme)://\(host.contains(":") ? "[\(host)]" : host)" + (url.port.map { ":\($0)" } ?? "")
        let hasMore = url.path().split(separator: "/").count > 1
        return "there is no database at \(url.absoluteString): the peer's one is \(place)/\(match.1)"
            + (hasMore ? "; --collections names collections of it" : "")
    }

    /// The command for a peer that only sends or only takes documents, by the words of its refusal.
    private static func oneWayHint(_ message: String) -> String? {
        let onlySends = ["pull-only replicator", "listener is read-only"]
        if onlySends.contains(where: message.contains) {
            return "the peer only sends documents: use `loveseat pull`"
        }
        guard message.contains("from a push-only replicator") else { return nil }
        return "the peer only takes documents: use `loveseat push`"
    }
}
