import ArgumentParser
import Foundation
import Loveseat
import LoveseatCouchDB

struct Export: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print all documents as JSON lines, in order of their IDs.",
        discussion: """
            Each line is a document with its ID as "_id", and "_collection" if that is not the default one. The content \
            of a blob is in lines before the first document that refers to it: its digest as "_blob", and up to 192 kB as \
            "content", in Base64. "_expires" is when it is purged, in milliseconds since 1970; "_peer" marks what `save` refuses, and only a \
            peer can give a document. Lines with "_index" are indexes. Equal databases give equal text, which `import` reads.

            Deleted documents, conflicts and histories are left out unless --revisions is used: each document then has its whole \
            revision tree, and an imported copy replicates with the peers of this database as it does itself, without \
            conflicts. Checkpoints, local documents and what was purged are never exported.

            --json prints one JSON object with the numbers of documents: those that are printed ("documents"), those that are left out \
            ("deleted", "conflicts"), and those with damage ("incomplete", "damaged"). After a failure it also has "error" and "exitCode". It is \
            on standard error, since the documents are on standard output. With --to-couchdb it is the object of `push --json`, on standard output.

            With --to-couchdb nothing else is printed: all revisions that are not replaced, deletions and attachments are pushed to a \
            CouchDB once, as `push` does. The default collection becomes the URL's database, and any other one the database \
            name.scope.collection.

            EXAMPLE
              loveseat export trips --to-couchdb https://couch.example.org/trips \\
                --create-target --user ana
            """
    )

    @OptionGroup var argument: DatabaseArgument
    @Option(
        name: [.short, .long],
        help: "Only this collection.",
        completion: .custom { Completions.collections($0, $1, $2) }
    )
    var collection: String?
    @Flag(
        help:
            "Leave out the content of blobs. Documents that refer to blobs can then be read, but not imported."
    )
    var noBlobs = false
    @Flag(help: "Print deleted documents, conflicts and histories, too.")
    var revisions = false
    @Option(
        name: .customLong("to-couchdb"),
        help: ArgumentHelp("Push everything to a CouchDB database, instead of printing it.", valueName: "URL")
    )
    var couchDB: String?
    @Flag(help: "With --to-couchdb, create the database if it does not exist.")
    var createTarget = false
    @Flag(help: "Print the numbers of documents as one JSON object.")
    var json = false
    @OptionGroup(title: "CouchDB") var login: CouchDBLogin

    func validate() throws {
        guard let couchDB else {
            guard login.isEmpty, !createTarget else {
                throw ValidationError("--create-target and options for logging in need --to-couchdb.")
            }
            return
        }
        guard CouchDBLogin.isURL(couchDB) else {
            throw ValidationError("--to-couchdb needs a URL that begins with http:// or https://.")
        }
        guard !noBlobs, !revisions else {
            throw ValidationError("--no-blobs and --revisions are not for --to-couchdb.")
        }
    }

    func run() async throws {
        if let couchDB {
            var sync = try login.options(argument.database, couchDB)
            sync.json = json
            sync.peer.createTarget = createTarget
            sync.peer.collections = collection ?? ""
            return try await sync.run(.push)
        }
        // An error must not look like a document.
        Output.standard.reserve()
        var exporter: Exporter?
        do { try await export(&exporter) } catch {
            // A reader that has gone, as `head` does, is not a failure.
            if json, !(error is Output.Gone) { Self.report(exporter, error) }
            throw error
        }
        if json { Self.report(exporter, nil) }
    }

    /// `exporter` is the one that counts, as soon as there is one.
    private func export(_ exporter: inout Exporter?) async throws {
        let database = try argument.read()
        let collections = try database.collections(named: collection.map { [try $0.collectionName] } ?? [])
        var current = Exporter(of: database, blobs: !noBlobs, revisions: revisions) {
            try Output.standard.stored($0)
        }
        defer { exporter = current }
        for collection in collections { try current.export(collection) }
        // The numbers below are printed only if everything was written.
        try Output.standard.flush()
        if !json { Self.report(current) }
        try await database.close()
        try Self.requireWhole(current)
    }

    /// Prints the numbers of documents as JSON, and what has failed.
    private static func report(_ exporter: Exporter?, _ error: (any Error)?) {
        func list(_ documents: [String]?) -> JSONValue { .array((documents ?? []).map { .string($0) }) }
        var value: JSONValue = [
            "documents": JSONValue(exporter?.documentCount ?? 0),
            "deleted": JSONValue(exporter?.deletedCount ?? 0),
            "conflicts": JSONValue(exporter?.conflictCount ?? 0),
            "incomplete": list(exporter?.incomplete.map(\.document)),
            "damaged": list(exporter?.damaged.map(\.document)),
        ]
        if let error { value.add(error) }
        Output.remark(raw: value.description.printableJSON + "\n")
    }

    /// Says what is damaged, and what is left out.
    private static func report(_ exporter: Exporter) {
        for (document, reasons) in exporter.incomplete {
            Output.remark("loveseat: \(document): \(reasons.joined(separator: ", "))")
        }
        for (document, reason) in exporter.damaged { Output.remark("loveseat: \(document): \(reason)") }
        let leftOut = [
            exporter.deletedCount > 0 ? exporter.deletedCount.counted("deleted document") : nil,
            exporter.conflictCount > 0
                ? "the other versions of " + exporter.conflictCount.counted("document") + " with conflicts"
                : nil,
        ].compactMap(\.self)
        if !leftOut.isEmpty {
            Output.notice(
                "loveseat: left out: \(leftOut.joined(separator: ", ")) (--revisions exports them, too)"
            )
        }
    }

    private static func requireWhole(_ exporter: Exporter) throws {
        var problems: [String] = []
        if !exporter.incomplete.isEmpty {
            let count = exporter.incomplete.count
            problems.append(
                "\(count.counted("document")) \(count == 1 ? "refers" : "refer") to blobs that are missing or damaged, which are left out"
            )
        }
        if !exporter.damaged.isEmpty {
            problems.append(
                "\(exporter.damaged.count.counted("document")) cannot be read, and \(exporter.damaged.count == 1 ? "is" : "are") left out"
            )
        }
        if problems.isEmpty { return }
        throw LoveseatError(
            .corruptData,
            "\(problems.joined(separator: "; ")): all else was printed, and `import` accepts it"
        )
    }
}
