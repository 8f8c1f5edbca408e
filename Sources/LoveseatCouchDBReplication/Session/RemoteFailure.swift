package import LoveseatModel

/// An answer of a remote that reports an error (protocol/couchdb.md §9).
package struct RemoteFailure: Error, Hashable, Sendable {
    package let status: Int
    /// CouchDB's word for it; empty if the answer has none.
    package let error: String
    package let reason: String
    /// Seconds for which the remote asks not to be tried again.
    package let retryAfter: UInt?

    /// `body`: the answer, or its beginning.
    package init(status: Int, body: [UInt8], retryAfter: UInt? = nil) {
        self.status = status
        self.retryAfter = retryAfter
        let element = try? JSONElement(parsing: body)
        func text(_ name: String) -> String? {
            guard let element else { return CutObject.string(name, in: body) }
            return element[name]?.string
        }
        error = text("error") ?? ""
        reason = text("reason") ?? Self.sentence(body) ?? ""
    }

    /// A short text that is not JSON: it comes from a server that is not a CouchDB, or from a proxy.
    private static func sentence(_ body: [UInt8]) -> String? {
        guard let first = body.first, first != UInt8(ascii: "{"), first != UInt8(ascii: "<"),
            body.count <= 200,
            body.allSatisfy({ (0x20..<0x7F).contains($0) || $0 == 0x0A || $0 == 0x0D })
        else { return nil }
        return body.split(whereSeparator: { $0 < 0x20 }).first.map { String(decoding: $0, as: UTF8.self) }
    }

    /// Whether the account is locked for a while after failed logins, with which no document is meant.
    package var isLockedOut: Bool { status == 403 && reason.contains("temporarily locked") }

    /// Whether the remote does not know a kind of request: it lacks the endpoint or the form, or fails at it.
    package var lacksEndpoint: Bool { [400, 404, 405, 406, 415, 500, 501].contains(status) }

    /// Whether the remote refuses the document that was sent alone, and not the replicator.
    package var refusesDocument: Bool {
        switch status {
        case 403: !isLockedOut
        case 400, 409, 412, 413, 415, 422: true
        default: false
        }
    }

    /// Whether the remote may refuse or fail at the document that was sent, or at everything that this client sends.
    package var isDoubtful: Bool { status == 401 || (status == 500 && !lacksSpace) }

    /// Whether the remote's disk is full.
    package var lacksSpace: Bool { status == 507 || (status == 500 && Self.namesFullDisk(error, reason)) }

    /// Whether the words of an answer are those of CouchDB for a full disk.
    static func namesFullDisk(_ words: String...) -> Bool {
        words.contains { $0.lowercased().contains("enospc") || $0.contains("insufficient_storage") }
    }

    /// The code for a remote whose disk is full.
    static let fullDisk = LoveseatError.Code(10_507)

    /// The maximum of a reason that is shown to people, in characters: some servers add what their program did.
    private static let maximumShown = 500

    /// The error of a replication. `what`: what was asked for, such as `_bulk_docs`.
    package func failure(of what: String) -> LoveseatError {
        var text = reason.isEmpty ? (error.isEmpty ? "HTTP \(status)" : error) : reason
        if text.hasSuffix(".") { text.removeLast() }
        if text.count > Self.maximumShown { text = text.prefix(Self.maximumShown) + "…" }
        var code = LoveseatError.Code(10_000 + status)
        var advice = ""
        var remedy: LoveseatError.Remedy?
        switch status {
        case 401: advice = ": check the user name and password"
        // It passes after some minutes, as what is asked for too often does.
        case 403 where isLockedOut: code = LoveseatError.Code(10_429)
        case _ where lacksSpace:
            (code, text, advice) = (Self.fullDisk, "its disk is full", ": free some space there")
        case 404: (advice, remedy) = (": check the URL, or create the database", .creatingDatabase)
        default: break
        }
        var failure = LoveseatError(code, "the peer answered \(status) to \(what): \(text)\(advice)")
        failure.remedy = remedy
        failure.retryAfter = retryAfter ?? (isLockedOut ? 300 : nil)
        return failure
    }
}
