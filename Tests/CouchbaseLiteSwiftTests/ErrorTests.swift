import CouchbaseLiteSwift
import Foundation
import Testing

@Suite(.ownThreads) struct ErrorTests {
    @Test func `an error of the engine is an NSError with domain, code and message`() throws {
        let world = try World()
        do {
            try world.sights.purge(id: "nowhere")
            Issue.record("nothing was thrown")
        } catch let error as NSError {
            #expect(error.domain == "CouchbaseLite")
            #expect(error.code == CBLError.notFound)
            #expect(error.localizedDescription.contains("nowhere"))
        }
    }

    @Test func `codes are Couchbase Lite's`() {
        #expect(CBLError.domain == "CouchbaseLite")
        #expect(CBLError.notOpen == 6)
        #expect(CBLError.badDocID == 29)
        #expect(CBLError.tlsCertUnknownRoot == 5011)
        #expect(CBLError.httpConflict == 10409)
        #expect(CBLError.webSocketGoingAway == 11001)
        #expect(CBLError.invalidJSON == 17001)
    }
}
