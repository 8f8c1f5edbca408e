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
}
