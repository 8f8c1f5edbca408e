package import LoveseatModel

/// The peers that are found and those that are connected, as nodes of a picture.
///
/// Anybody on the network can advertise anything: a peer that was only found is marked so.
package struct MeshPicture: Sendable {
    /// A peer that was found by discovery.
    package struct Found: Hashable, Sendable {
        package let id: String
        /// The ID of its database, if it says one.
        package let peerID: String?
        package let name: String
        package let path: String?
        package let wire: String
        /// The beginning of its certificate's fingerprint, as it says.
        package let fingerprintHint: String?
        package let usesTLS: Bool?
        package let isPairing: Bool
        package let interfaces: [String]

        package init(
            id: String,
            peerID: String?,
            name: String,
            path: String?,
            wire: String,
            fingerprintHint: String?,
            usesTLS: Bool?,
            isPairing: Bool,
            interfaces: [String]
        ) {
            (self.id, self.peerID, self.name, self.path) = (id, peerID, name, path)
            (self.wire, self.fingerprintHint, self.usesTLS) = (wire, fingerprintHint, usesTLS)
            (self.isPairing, self.interfaces) = (isPairing, interfaces)
        }
    }

    private static let maximumNodes = 200

    /// `ownID`: the public ID of this database, which may be advertised too. `report`: see ``ConnectionTable/report(after:at:)``.
    package static func json(
        name: String,
        ownID: String,
        found: [Found],
        report: JSONValue?,
        problem: String?
    )
        -> JSONValue
    {
        let peers = report?["peers"]?.array ?? []
        var matched: Set<String> = []
        var nodes: [JSONValue] = []
        for peer in found.sorted(by: { ($0.name, $0.id) < ($1.name, $1.id) }).prefix(maximumNodes) {
            let isSelf = peer.peerID == ownID
            let connected = isSelf ? [] : peers.filter { matches($0, peer) }
            for line in connected { matched.insert(line["key"]?.string ?? "") }
            var node: JSONObject = [
                "id": .string("found \(peer.id)"), "name": .string(peer.name), "isFound": true,
                "isSelf": .bool(isSelf), "wire": .string(peer.wire),
                "interfaces": .array(peer.interfaces.map { .string($0) }), "isPairing": .bool(peer.isPairing),
                "links": .array(connected),
            ]
            node["path"] = peer.path.map { .string($0) }
            node["usesTLS"] = peer.usesTLS.map { .bool($0) }
            nodes.append(.object(node))
        }
        for line in peers.prefix(maximumNodes) where !matched.contains(line["key"]?.string ?? "") {
            nodes.append([
                "id": .string("connected \(line["key"]?.string ?? "")"), "name": line["title"] ?? "",
                "isFound": false, "isSelf": false, "wire": line["wire"] ?? "", "links": [line],
            ])
        }
        return [
            "self": ["name": .string(name), "id": .string(ownID)], "nodes": .array(nodes),
            "isServing": .bool(report != nil), "problem": problem.map { .string($0) } ?? .null,
        ]
    }

    /// Only a certificate says that a connection is with the peer that was found.
    private static func matches(_ line: JSONValue, _ peer: Found) -> Bool {
        guard let hint = peer.fingerprintHint, hint.utf8.count == 32 else { return false }
        return line["fingerprint"]?.string?.hasPrefix(hint) ?? false
    }
}
