import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatModel
import Testing

/// `TreeMessage`: the text of a tree that a peer has sent.
struct TreeMessageTests {
    @Test(arguments: [
        (#"["3-cc","2-bb","1-aa"]"#, true), (#"["3-cc","1-aa"]"#, true), (#"["2-bb","2-aa"]"#, false),
        (#"["1-bb","2-aa"]"#, false), (#"["2-bb","1-aa","1-cc"]"#, false),
    ])
    func `each revision of a line is of a later generation than its parent`(_ line: String, _ isValid: Bool)
        throws
    {
        let current = try #require(try JSONElement(parsing: Array(line.utf8))[0]?.string)
        let text = #"{"current":"\#(current)","lines":[\#(line)]}"#
        guard isValid else {
            #expect(throws: ReplyError("HTTP", 400, "invalid tree: a line that does not go down")) {
                try TreeMessage.parse(Array(text.utf8))
            }
            return
        }
        let tree = try TreeMessage.parse(Array(text.utf8))
        #expect(tree.current.text == current)
        #expect(tree.knowledge.nodes.last?.id.text == "1-aa")
    }
}
