import LoveseatBLIP
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import Testing

/// A side that does without extensions, as Couchbase Lite 3 and the simulator's plain peers do.
@Suite struct PlainSideTests {
    private func properties(of conversation: Conversation, _ profile: String) throws -> [String: String] {
        let message = try conversation.take(profile).message
        let names = ["loveseat", "loveseat_active_only", "loveseat_known"]
        return Dictionary(
            uniqueKeysWithValues: names.compactMap { name in message.properties[name].map { (name, $0) } }
        )
    }

    /// A conversation of an active side whose document `d` has two lines.
    private func conversation(isPlain: Bool) throws -> Conversation {
        let conversation = try Conversation(active: {
            ($0.pushes, $0.isPlain) = (true, isPlain)
        })
        let histories = ["2-bb,1-aa", "2-cc,1-dd"]
        for history in histories {
            let line = try history.split(separator: ",").map { try #require(RevisionID(String($0))) }
            _ = try conversation.store.write { transaction in
                try transaction.insert(
                    IncomingRecord(
                        documentID: "d",
                        history: line,
                        isDeleted: false,
                        body: .emptyObject,
                        sender: .loveseat
                    ),
                    in: conversation.collection
                )
            }
        }
        try conversation.begin()
        return conversation
    }

    @Test func `a plain active side names no extensions, and says nothing of trees`() throws {
        let plain = try properties(of: conversation(isPlain: true), "proposeChanges")
        #expect(plain == [:])
        let other = try properties(of: conversation(isPlain: false), "proposeChanges")
        #expect(Set(other.keys) == ["loveseat", "loveseat_known"])
    }

    @Test func `a plain active side that has nothing yet asks for tombstones, too`() throws {
        for isPlain in [true, false] {
            let conversation = try Conversation(active: {
                ($0.pulls, $0.isPlain) = (true, isPlain)
                $0.collections[0].isEmpty = true
            })
            try conversation.begin()
            let found = try properties(of: conversation, "subChanges")
            #expect(Set(found.keys) == (isPlain ? [] : ["loveseat", "loveseat_active_only"]))
        }
    }
}
