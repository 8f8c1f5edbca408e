import LoveseatCore
import LoveseatCouchDB
import LoveseatModel
import LoveseatTesting
import Testing

/// A version that lost on every device stays lost, whichever wire tells of the deletion of the one that won.
struct LosingBranchTests {
    @Test(arguments: [0, 1], [true, false])
    func `a document that is deleted after a conflict is deleted for peers of CouchDB's wire, too`(
        _ deleter: Int,
        _ isForward: Bool
    ) async throws {
        for bodies: [JSONValue] in [[["by": "a"], ["by": "b"]], [["by": "b"], ["by": "a"]]] {
            let mesh = try await PeerMesh(2)
            for (peer, body) in zip(mesh.peers, bodies) { try peer.save("n", body) }
            let blip = PeerMesh.link(0, 1, isCouch: false, isForward: isForward)
            _ = try await mesh.peers[blip.active].replicate(try mesh.configuration(blip, .pushAndPull))
            let collection = try mesh.peers[deleter].collection
            try collection.delete(try #require(try collection.document(id: "n")))
            let couch = PeerMesh.link(0, 1, isCouch: true, isForward: isForward)
            for _ in 0..<3 {
                let pass = try await mesh.peers[couch.active].replicate(
                    try mesh.configuration(couch, .pushAndPull)
                )
                #expect(pass.status.error == nil)
                #expect(pass.failed.isEmpty)
            }
            for peer in mesh.peers { #expect(try peer.collection.document(id: "n") == nil) }
            await mesh.end()
        }
    }
}
