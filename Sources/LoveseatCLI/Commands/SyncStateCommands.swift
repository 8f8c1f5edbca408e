import ArgumentParser
import Loveseat
import LoveseatInspector

struct Pending: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "List documents with changes that a peer does not have yet.",
        discussion: """
            The list is what this database knows; the peer is not asked. Use the same --collections, --doc-ids and --filter as \
            with `push` or `sync`.

            A document that the peer refused with 403, or with 413 since it is too large, is not pending: it is sent again when it changes, or with --reset. --refused \
            lists those, each with the peer's reason.
            """
    )
    @OptionGroup var argument: DatabaseArgument
    @OptionGroup var peer: PeerOptions
    @Flag(help: "List the documents that the peer refused, instead.")
    var refused = false
    @Flag(help: "Print one JSON object per line.")
    var json = false

    func run() async throws {
        let database = try argument.read()
        let configuration = try peer.configuration(database, .pushAndPull, connects: false)
        let replicator = Replicator(configuration)
        for entry in configuration.collections {
            let name = entry.collection.fullName
            guard !refused else {
                try printRefused(try replicator.refusedDocuments(collection: entry.collection), of: name)
                continue
            }
            for id in try replicator.pendingDocumentIds(collection: entry.collection) {
                if json {
                    try Output.standard.line(["collection": .string(name), "id": .string(id)])
                } else {
                    try Output.standard.fields(name, id)
                }
            }
        }
        try await database.close()
    }

    private func printRefused(_ refused: [(documentID: String, error: LoveseatError)], of name: String) throws
    {
        for (id, error) in refused {
            if json {
                try Output.standard.line([
                    "collection": .string(name), "id": .string(id), "error": .string(error.message),
                ])
            } else {
                try Output.standard.fields(name, id, error.message)
            }
        }
    }
}

struct Conflicts: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract:
            "List documents with conflicts: every document with more than one live leaf that nobody gave up.",
        discussion: """
            Prints the collection, the document's ID, the state, the current revision, and the other leaves, the highest first. A document \
            whose current revision is a deletion is listed, too, if it has a live leaf.

            The state is "waiting" if a pulled revision waits for the app's resolver, which the next `pull` or `sync` asks; "kept" if peers of \
            CouchDB's wire keep the branches, until somebody ends the conflict; or "decided" if all Loveseats show the same revision by \
            their rule, and the others are only kept until the next edit. `resolve` ends a conflict in any state, and `get --rev` shows \
            another leaf. `revs` shows all revisions of a document.
            """
    )
    @OptionGroup var argument: DatabaseArgument
    @Flag(help: "Print one JSON object per line.")
    var json = false

    func run() async throws {
        let database = try argument.read()
        for collection in try database.collections(named: []) {
            for document in try CollectionConflicts(collection).all(includingDecided: true) {
                let (id, state) = (document.id, document.state.rawValue)
                let revisions = document.revisions.map(\.text)
                if json {
                    try Output.standard.line([
                        "collection": .string(collection.fullName), "id": .string(id),
                        "state": .string(state), "revisions": .array(revisions.map { .string($0) }),
                    ])
                } else {
                    try Output.standard.fields([collection.fullName, id, state] + revisions)
                }
            }
        }
        try await database.close()
    }
}

struct Resolve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "End a document's conflict: keep one revision, and give up the others.",
        discussion: """
            `conflicts` lists the revisions. Any live leaf can be kept, also one that lost by the rule between Loveseats: it becomes the \
            current one. Prints the current revision afterwards. Works beside `serve`, too.

            EXAMPLE
              loveseat resolve trips lisbon --keep 3-a1b2
            """
    )
    @OptionGroup var options: CollectionOptions
    @Argument(help: "The document's ID.", completion: .documentID)
    var id: String
    @Option(help: "The revision to keep. \(RevisionArgument.help)")
    var keep: String

    func run() async throws {
        let (database, collection) = try options.read()
        let (leaves, known) = try collection.requiring(id) {
            (
                try CollectionConflicts(collection).liveLeaves(of: id),
                try CollectionHistory(collection).revisions(of: id)
            )
        }
        try await database.close()
        let live = known.filter { leaves.contains($0.id) }
        let found = try RevisionArgument.revision(keep, of: id, among: live, hint: "conflicts")
        guard let revision = found else {
            let list = leaves.map(\.text).joined(separator: ", ")
            throw LoveseatError(
                .conflict,
                "\"\(id)\" has no live leaf \(keep): \(list.isEmpty ? "it is deleted" : "keep one of \(list)")"
            )
        }
        let edit = InspectorEdit(
            collection: try options.name(),
            document: id,
            change: .keep(revision, edit: nil)
        )
        let made = try await ControlBackend(database: options.argument.database).perform(edit)
        try Output.standard.line(made.text)
    }
}

struct Why: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show whether a document is at a peer as it is here, and why not.",
        discussion: """
            The answer is what this database knows; the peer is not asked. One of: up-to-date, pending, in-conflict, \
            not-listed, filtered, refused, not-pulled, not-pushed, passed-over, expired, not-here.

            The document is in the default collection, or in the one that --collections names.

            EXAMPLE
              loveseat why trips tower ws://192.168.1.7:55990/trips
            """
    )
    @OptionGroup var argument: DatabaseArgument
    @Argument(help: "The document's ID.", completion: .documentID)
    var document: String
    @OptionGroup var peer: PeerOptions
    @Flag(help: "Print one JSON object.")
    var json = false

    func run() async throws {
        let database = try argument.read()
        let configuration = try peer.configuration(database, .pushAndPull, connects: false)
        // If there are several collections, the default one is used.
        let collections = configuration.collections.map(\.collection)
        guard
            let collection = collections.first(where: { $0.fullName == "_default._default" })
                ?? collections.first
        else { throw LoveseatError(.notFound, "there is no collection in \(argument.database)") }
        let state = try Replicator(configuration).syncState(of: document, collection: collection)
        let isHere = try collection.document(id: document) != nil
        let meant = isHere ? nil : collection.probablyMeant(by: document)
        try await database.close()
        if json {
            try Output.standard.line([
                "id": .string(document), "reason": .string(state.name),
                "detail": .string(state.sentence),
            ])
        } else {
            try Output.standard.line("\(state.name): \(state.sentence)")
            if let meant { Output.notice("loveseat: did you mean \"\(meant)\"?") }
        }
    }
}
