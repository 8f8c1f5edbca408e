import LoveseatBLIP
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import Testing

/// Gateways accept top-level names that begin with `_`, which cannot be saved here.
struct ReservedNameTests {
    @Test func `properties that a pull leaves out are reported`() throws {
        let ours = try ReplayedPeer()
        let line = try ours.activeLine()
        _ = try line.ask("changes", [:], #"[[1,"d","1-aa"],[2,"e","1-aa"]]"#).get()
        let body = #"{"_mine":1,"n":2,"_attachments":{},"_x":[]}"#
        try line.tell("rev", ["id": "d", "rev": "1-aa", "sequence": "1"], body)
        try line.tell("rev", ["id": "e", "rev": "1-aa", "sequence": "2"], #"{"_id":"e","n":2}"#)
        #expect(try ours.record("d")?.body.description == #"{"n":2}"#)
        #expect(try ours.record("e")?.body.description == #"{"n":2}"#)
        let reports = line.reports.filter { if case .propertiesLeftOut = $0 { true } else { false } }
        #expect(reports == [.propertiesLeftOut(collection: 0, documentID: "d", names: ["_mine", "_x"])])
    }

    @Test func `properties that are left out of what a peer pushes are reported to the passive side`() throws
    {
        let ours = try ReplayedPeer()
        let line = try ours.passiveLine()
        _ = try line.ask("proposeChanges", [:], #"[["d","1-aa"]]"#).get()
        _ = try line.ask("rev", ["id": "d", "rev": "1-aa", "sequence": "1"], #"{"_mine":1,"n":2}"#).get()
        #expect(try ours.record("d")?.body.description == #"{"n":2}"#)
        let reports = line.reports.filter { if case .propertiesLeftOut = $0 { true } else { false } }
        #expect(reports == [.propertiesLeftOut(collection: 0, documentID: "d", names: ["_mine"])])
    }
}
