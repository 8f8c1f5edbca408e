import LoveseatCouchDBReplication
import Testing

/// The `instance_start_time` by which a checkpoint names the remote's database.
struct LastingInstanceTests {
    @Test(arguments: [
        ("1795293848", true), ("17", true), ("a8f-2", true), ("1795293848.25", true),
        ("0", false), ("1795293848123", false), ("1700000000000000", false),
    ])
    func `a checkpoint names the database by the time of its creation, and not by the start of a server`(
        _ text: String,
        _ isLasting: Bool
    ) {
        #expect(RemoteCheckpoint.lasting(text) == (isLasting ? text : nil))
        var checkpoint = RemoteCheckpoint()
        checkpoint.instance = RemoteCheckpoint.lasting(text)
        #expect(!checkpoint.isAboutAnother(than: RemoteCheckpoint.lasting(text)))
        #expect(checkpoint.isAboutAnother(than: "another") == isLasting)
        #expect(!RemoteCheckpoint().isAboutAnother(than: text))
    }
}
