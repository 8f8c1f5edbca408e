/// The probes that our listener answers in another way, with the reasons (docs/couchdb.md, "Deviations").
enum Deviations {
    static let reasons: [String: String] = {
        var reasons: [String: String] = [:]
        for (reason, probes) in groups { for probe in probes { reasons[probe] = reason } }
        return reasons
    }()

    private static let groups: [String: [String]] = [
        "_security is stored and replicated tools may read it, but it opens nothing: the listener's authenticator decides":
            [
                "admin/10", "admin/20", "admin/21",
            ],
        "a listener with an authenticator tells nothing before it": ["server/27"],
        "text is not compressed when it is stored": ["attachments/46", "bulk-get/41", "changes/36"],
        "attachments come inline only if attachments=true asks for them": [
            "bulk-get/27", "bulk-get/30", "bulk-get/43",
        ],
        "total_rows counts what is listed": ["all-docs/74"],
        "a cookie that is not ours is none": ["auth/56", "auth/59"],
        "broken credentials are refused with 401, and the name of a scheme may have any case": [
            "auth/21", "auth/32", "auth/33",
        ],
        "other content for a revision that is here is reported": ["bulk-docs/34"],
        "a preflight with credentials is answered like others": ["cors/12"],
        "there are no shards": ["databases/67", "databases/68", "databases/69"],
        "latest=true finds the leaf above the named revision": ["doc-get/37", "doc-get/38"],
        "revisions are N-x with N from 1 to 2147483647 and a suffix of printable ASCII": [
            "doc-get/44", "doc-get/45", "doc-put/93", "doc-put/94", "doc-put/95",
        ],
        "attachments have names": ["doc-put/20"],
        "forms are not taken": ["doc-put/116", "doc-put/117", "local/32"],
        "values are nested less deeply": ["limits/4"],
        "_revisions of a local document mean nothing": ["local/25"],
        "a local document without a name is unknown": ["local/28"],
        "an encoded slash after _design is served where it is": ["open-revs/39", "urls/85"],
        "errors are always JSON": ["server/11"],
    ]
}
