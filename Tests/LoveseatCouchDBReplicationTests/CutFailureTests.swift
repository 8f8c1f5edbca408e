import LoveseatCouchDBReplication
import LoveseatModel
import Testing

/// Answers that report an error, of which the end is missing.
struct CutFailureTests {
    private static let body = Array(
        #"{ "ref" : {"reason":"inner","x":["]","\"}"]},"error":"unknown_error","n":[1,{}], "reason":"the \"disk\" é😀\u00e9\ud83d\ude00 failed"}"#
            .utf8
    )

    @Test func `of a reason that is cut there is what came`() {
        let whole = RemoteFailure(status: 500, body: Self.body)
        #expect(whole.reason == "the \"disk\" é😀é😀 failed")
        var longest = 0
        for end in Self.body.indices {
            let cut = RemoteFailure(status: 500, body: Array(Self.body[..<end]))
            #expect(whole.error.utf8.starts(with: cut.error.utf8), "\(end)")
            #expect(whole.reason.utf8.starts(with: cut.reason.utf8), "\(end): \(cut.reason)")
            #expect(cut.reason.utf8.count >= longest, "\(end)")
            longest = cut.reason.utf8.count
        }
        #expect(longest == whole.reason.utf8.count)
    }

    @Test(arguments: [
        "", "{", "<html>{\"reason\":\"x", "{\"reason\":5", "{]{:\"reason\"", "{\"a\":{\"reason\":\"x",
    ])
    func `what is not the beginning of an object with a reason has none`(_ text: String) {
        #expect(RemoteFailure(status: 500, body: Array(text.utf8)).reason.isEmpty)
    }

    @Test func `a full disk is recognised at the beginning of a long answer`() {
        let rest = String(repeating: "x", count: 70_000)
        let body = Array(#"{"error":"badmatch","reason":"{error,enospc} \#(rest)"#.utf8)
        let failure = RemoteFailure(status: 500, body: body)
        #expect(failure.lacksSpace)
        #expect(failure.failure(of: "_bulk_docs").message.contains("its disk is full"))
    }

    @Test func `only a database that is not there can be created`() {
        #expect(RemoteFailure(status: 404, body: []).failure(of: "db").remedy == .creatingDatabase)
        for status in [400, 401, 403, 500, 507] {
            #expect(RemoteFailure(status: status, body: []).failure(of: "db").remedy == nil, "\(status)")
        }
    }

    @Test func `a long reason is shown in part`() {
        let reason = String(repeating: "why ", count: 20_000)
        let body = Array(#"{"error":"x","reason":"\#(reason)"}"#.utf8)
        let message = RemoteFailure(status: 400, body: body).failure(of: "_changes").message
        #expect(message.contains("why why"))
        #expect(message.count < 1_000)
    }
}
