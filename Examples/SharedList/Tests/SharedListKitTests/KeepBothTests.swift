import Loveseat
import SharedListKit
import Testing

/// The rule for documents that were edited on two devices at once.
struct KeepBothTests {
    struct Case: Sendable {
        let base, mine, theirs, merged: JSONObject
    }

    static let cases = [
        // Each changed another property.
        Case(
            base: ["text": "milk", "note": "", "isDone": false],
            mine: ["text": "oat milk", "note": "", "isDone": false],
            theirs: ["text": "milk", "note": "two", "isDone": true],
            merged: ["text": "oat milk", "note": "two", "isDone": true]
        ),
        // Both changed the same text, one of them by way of the other.
        Case(
            base: ["text": "milk"],
            mine: ["text": "soy milk"],
            theirs: ["text": "oat milk"],
            merged: ["text": "oat milk / soy milk"]
        ),
        Case(
            base: ["text": "milk"],
            mine: ["text": "oat milk / soy milk"],
            theirs: ["text": "oat milk"],
            merged: ["text": "oat milk / soy milk"]
        ),
        Case(
            base: [:],
            mine: ["note": "from the market", "isDone": true],
            theirs: ["note": "a small one", "isDone": false],
            merged: ["note": "a small one\nfrom the market", "isDone": false]
        ),
        // What a newer version of the app knows; a property that one of them removed.
        Case(
            base: ["price": 3, "shop": "corner"],
            mine: ["price": 4],
            theirs: ["price": 3, "shop": "corner", "colour": "red"],
            merged: ["price": 4, "colour": "red"]
        ),
    ]

    @Test(arguments: cases)
    func `both people's edits stay, whichever side asks`(_ one: Case) {
        #expect(KeepBoth.merge(one.mine, one.theirs, base: one.base) == one.merged)
        #expect(KeepBoth.merge(one.theirs, one.mine, base: one.base) == one.merged)
        #expect(KeepBoth.merge(one.merged, one.theirs, base: one.theirs) == one.merged)
    }

    private func resolve(mine: JSONObject?, theirs: JSONObject?, base: JSONObject? = nil) async throws
        -> JSONObject?
    {
        let document = { (properties: JSONObject) in Document(id: "milk", properties) }
        let conflict = Conflict(
            documentID: "milk",
            localDocument: mine.map(document),
            remoteDocument: theirs.map(document),
            baseDocument: base.map(document)
        )
        return try await KeepBoth().resolve(conflict: conflict)?.properties
    }

    @Test func `an edit wins over a deletion, on whichever side it was made`() async throws {
        #expect(try await resolve(mine: ["text": "milk"], theirs: nil) == ["text": "milk"])
        #expect(try await resolve(mine: nil, theirs: ["text": "milk"]) == ["text": "milk"])
        #expect(try await resolve(mine: nil, theirs: nil) == nil)
    }

    @Test func `the version that both people had before decides who changed what`() async throws {
        let (mine, theirs): (JSONObject, JSONObject) = (["text": "oat milk"], ["text": "milk"])
        #expect(try await resolve(mine: mine, theirs: theirs, base: ["text": "milk"]) == mine)
        #expect(try await resolve(mine: theirs, theirs: mine, base: ["text": "milk"]) == mine)
        #expect(try await resolve(mine: mine, theirs: theirs)?["text"] == "oat milk")
    }
}
