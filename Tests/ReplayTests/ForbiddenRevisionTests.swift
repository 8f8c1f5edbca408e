import LoveseatBLIP
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import LoveseatTesting
import Testing

/// The right to write a document may come with another document of the same push (gateway.md 57).
struct ForbiddenRevisionTests {
    @Test func `a forbidden revision is sent again only when everything else of the push is answered`() throws
    {
        let ours = try ReplayedPeer()
        let line = try ours.activeLine { ($0.pushes, $0.isContinuous) = (true, true) }
        let handle = try ours.collection(.default)
        for id in ["a", "b", "right"] {
            _ = try ours.store.write {
                try $0.save(id, in: handle, body: .emptyObject, isDeleted: false, condition: .lastWriteWins)
            }
        }
        try line.localChange()
        for list in line.take("proposeChanges") {
            try line.puppet.reply(Message(body: Array("[]".utf8)), to: list.number)
        }
        try line.runUntilQuiet()
        let first = line.take("rev")
        #expect(first.map { $0.message.properties["id"] } == ["a", "b", "right"])
        try #require(first.count == 3)
        for revision in first.prefix(2) {
            try line.puppet.reply(ReplyError("HTTP", 403, "missing channel access"), to: revision.number)
            try line.runUntilQuiet()
        }
        // The one that is not answered yet may give the right to the others.
        #expect(line.take("rev").isEmpty)
        try line.puppet.reply(Message(), to: first[2].number)
        try line.runUntilQuiet()
        let second = line.take("rev")
        #expect(second.map { $0.message.properties["id"] } == ["a", "b"])
        for revision in second { try line.puppet.reply(Message(), to: revision.number) }
        try line.runUntilQuiet()
        #expect(line.take("rev").isEmpty)
        #expect(line.failure == nil)
    }
}
