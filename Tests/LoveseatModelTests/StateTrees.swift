import Crypto
import LoveseatModel
import Testing

/// Steps with states of peers that have versions, in the notation of ``VersionNotation``.
enum States {
    /// A state: a vector and the revisions behind it.
    static func state(_ short: String, _ revisions: String = "") throws -> StateHistory {
        StateHistory(try vector(short), revisions: revisions.split(separator: " ").map { rev(String($0)) })
    }

    static func name(_ text: String) throws -> RevisionName {
        try RevisionName(VersionNotation.spelled(text))
    }

    /// The author d at T6.
    static func resolution(wall: UInt64 = VersionNotation.time(6)) throws -> StateResolution {
        try resolution(VersionAuthor(source("d")), wall: wall)
    }

    static func resolution(_ author: VersionAuthor, wall: UInt64) -> StateResolution {
        StateResolution(
            author: author,
            wall: wall,
            policy: .standard,
            documentID: "doc",
            sha1: { Array(sha256($0).prefix(20)) }
        ) { draft in
            let edit = RevisionID(
                generation: draft.parent.generation + 1,
                digest: sha256(Array("\(draft.parent) \(draft.isDeleted) ".utf8) + draft.body.bytes).prefix(
                    16
                )
            )
            return RevisionTree.Node(
                id: VerdictName.id(ofEdit: edit, over: draft.parent, givingUp: draft.givenUp, sha1: sha256),
                parent: draft.parent,
                flags: draft.isDeleted ? .deleted : [],
                body: draft.body
            )
        }
    }

    /// The derived name of a version on top of a revision, of the document `x`.
    static func id(_ short: String, over parent: String? = nil) throws -> RevisionID {
        let id = RevisionID(
            version: try version(short),
            documentID: "x",
            parent: parent.map(rev),
            sha256: sha256
        )
        return try #require(id)
    }

    @Sendable static func sha256(_ bytes: [UInt8]) -> [UInt8] { Array(SHA256.hash(data: bytes)) }
}

extension RevisionTree {
    /// Takes a state in, live or, without a number, deleted.
    @discardableResult
    mutating func take(
        _ short: String,
        _ revisions: String = "",
        _ number: Int? = 1,
        by resolution: StateResolution? = nil,
        _ change: (inout StateArrival) -> Void = { _ in }
    ) throws -> RevisionArrival.Outcome {
        var arrival = StateArrival(
            documentID: "x",
            state: try States.state(short, revisions),
            flags: number == nil ? .deleted : [],
            body: number.map(body) ?? .emptyObject,
            sha256: States.sha256
        )
        change(&arrival)
        var resolution = try resolution ?? States.resolution()
        let outcome = try arrival.insert(into: &self, by: &resolution)
        #expect(problems.isEmpty)
        return outcome
    }

    /// The vector of the current revision.
    var currentVector: VersionVector? { current.flatMap { vectors[$0.id] } }
}
