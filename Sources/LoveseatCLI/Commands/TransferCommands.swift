import ArgumentParser
import Foundation
import Loveseat
import LoveseatAssertions
import LoveseatCouchDB

struct Import: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Import documents from JSON.",
        discussion: """
            The file is a JSON array, JSON objects one after another (on a line each, or over several lines, as jq prints them), a \
            JSON object with an array that --array names, or with --keyed a JSON object that has the documents by their IDs. "-" is standard \
            input. A document's ID is its --id-field, by default "_id" or "id"; without \
            one it gets a random ID. The database and the collection are created if they do not exist. A document that is there already with \
            the same properties gets no new revision. Of an ID that comes more than once the last document counts: those that replace others \
            are saved when everything was read.

            Documents are saved in transactions of a thousand. If one is refused, those saved before it stay, unless --atomic \
            is used; of a new database nothing stays if nothing was saved. A document may have at most 20 MB of JSON and 128 levels, \
            and no key twice in an object.

            --from-couchdb takes the URL of a CouchDB database, which is pulled once with all revisions that are not replaced, or a \
            file: what _all_docs?include_docs=true&attachments=true or couchdb-dump (the script, or CouchDB-Python's) printed. Revisions, deletions and attachments are \
            kept, so that a later replication with that CouchDB transfers only what changed. --user, --ca and similar options are for a URL.

            --json prints {"documents":3,"unchanged":1,"replaced":0}: how many documents are saved, how many of them were there already with \
            the same properties, and how many later ones with the same ID replaced. After a failure it also has "error" and "exitCode". Of \
            a CouchDB's URL it is the object of `pull --json`.

            EXAMPLES
              loveseat import geo iso_3166-1.json --array 3166-1 \\
                --id-field alpha_3 --collection iso.countries
              loveseat export geo | loveseat import copy -
              loveseat import trips --from-couchdb \\
                https://couch.example.org/trips --user ana
              loveseat import trips --from-couchdb dump.json
            """
    )

    @OptionGroup var options: CollectionOptions
    @Argument(help: "The file; - for standard input.", completion: .file())
    var file: String?
    @Option(
        name: .customLong("from-couchdb"),
        help: ArgumentHelp(
            "Import a CouchDB database, or a dump of one; - for standard input.",
            valueName: "URL|file"
        ),
        completion: .file()
    )
    var couchDB: String?
    @OptionGroup(title: "CouchDB") var login: CouchDBLogin
    @Option(help: "The property that is the document's ID.")
    var idField: String?
    @Option(help: "The member of a JSON object that contains the array of documents.")
    var array: String?
    @Flag(help: "The file is an object that has the documents by their IDs.")
    var keyed = false
    @Flag(help: "Save no documents if one of them is refused.")
    var atomic = false
    @Flag(help: "Print the numbers of documents as one JSON object.")
    var json = false

    private var isFromServer: Bool { couchDB.map(CouchDBLogin.isURL) ?? false }

    func validate() throws {
        guard (file == nil) != (couchDB == nil) else {
            throw ValidationError("Name either a file or --from-couchdb.")
        }
        guard couchDB == nil || (idField == nil && array == nil && !keyed && !atomic) else {
            throw ValidationError("--id-field, --array, --keyed and --atomic are not for --from-couchdb.")
        }
        guard !keyed || idField == nil else {
            throw ValidationError("Name the documents' IDs by --keyed or --id-field, not by both.")
        }
        guard isFromServer || login.isEmpty else {
            throw ValidationError("Options for logging in and certificates need the URL of a CouchDB.")
        }
        if isFromServer, options.collection != "_default" {
            throw ValidationError(
                "A CouchDB database is imported into the default collection: use --collection only with a file."
            )
        }
    }

    /// The numbers of imported documents, by outcome.
    private struct Counts {
        var documents = 0
        var unchanged = 0
        var replaced = 0

        var json: JSONValue {
            [
                "documents": JSONValue(documents), "unchanged": JSONValue(unchanged),
                "replaced": JSONValue(replaced),
            ]
        }
    }

    /// An import that failed after it had saved so many documents.
    private struct Failure: Error {
        let error: any Error
        var counts = Counts()
    }

    func run() async throws {
        do { try await importOrUndo() } catch {
            let failure = (error as? Failure) ?? Failure(error: error)
            // The pull from a server prints its own object. The reader of the output may be gone; standard error says the same.
            if json, !isFromServer { try? Output.standard.line(Self.json(of: failure)) }
            throw failure.error
        }
    }

    private static func json(of failure: Failure) -> JSONValue {
        var value = failure.counts.json
        value.add(failure.error)
        return value
    }

    private func importOrUndo() async throws {
        let isNew = try !options.argument.exists
        do { try await importAll() } catch {
            let saved = (error as? Failure)?.counts.documents ?? 0
            if isNew, saved == 0 {
                do { try await removeIfEmpty() } catch {
                    Output.remark(
                        "loveseat: the database \(options.argument.database), which was created, cannot be removed: \(error)"
                    )
                }
            }
            throw error
        }
    }

    private func importAll() async throws {
        if let couchDB {
            guard CouchDBLogin.isURL(couchDB) else { return try importDump(couchDB) }
            try await options.argument.createUnasked().close()
            var sync = try login.options(options.argument.database, couchDB)
            sync.json = json
            return try await sync.run(.pull)
        }
        guard let file else { return impossible("neither a file nor a CouchDB was named") }
        try importDocuments(
            try DocumentSource(file: file, array: array, isKeyed: keyed, hasIDField: idField != nil)
        )
    }

    /// Removes the database that was created for an import which brought nothing.
    private func removeIfEmpty() async throws {
        // The import failed before it created the database.
        guard try options.argument.exists else { return }
        let database = try options.argument.open()
        let collections = try database.collections(named: [])
        guard collections.allSatisfy({ $0.count == 0 }) else {
            return try await database.close()
        }
        try await database.delete()
    }

    private func importDump(_ path: String) throws {
        let source = try FileSource(path)
        Signals.beginWithHangup()
        let (database, collection, created) = try options.createInSilence()
        var importer = try DumpImporter(collection: collection, name: source.name)
        var line = ProgressLine()
        let result = Result {
            try source.forEachPiece {
                try Self.checkInterrupt()
                try importer.receive($0)
                line.show { importer.count == 0 ? nil : Self.text(importer.count, source.share) }
            }
        }
        .flatMap { Result { try importer.finish() } }
        line.end()
        let kept = try Self.withdraw(created, [collection], of: database, if: result.failure != nil)
        try database.close()
        if importer.absentCount > 0 {
            Output.remark(
                "loveseat: left out: \(importer.absentCount.counted("row")) of documents that were asked for, and did not exist"
            )
        }
        let counts = Counts(documents: importer.count, unchanged: importer.unchangedCount)
        try report(counts, kept, failure: result.failure)
    }

    /// An import ends at a signal like one that fails.
    private static func checkInterrupt() throws {
        if let signal = Signals.interruption { throw Interrupted(signal: signal) }
    }

    private func importDocuments(_ source: DocumentSource) throws {
        Signals.beginWithHangup()
        let (database, collection, created) = try options.createInSilence()
        var importer = Importer(database: database, collection: collection, idField: idField)
        let result = Result {
            if atomic {
                try database.write { transaction in
                    importer.transaction = transaction
                    defer { importer.transaction = nil }
                    try Self.add(source, to: &importer)
                }
            } else {
                try Self.add(source, to: &importer)
            }
        }
        var counts = Counts()
        if result.failure == nil || !atomic {
            counts = Counts(documents: importer.count, unchanged: importer.unchangedCount)
            do { counts.replaced = try importer.replacedCount() } catch {
                // The import's own error is the one to report.
                if result.failure == nil { throw Failure(error: error, counts: counts) }
            }
        }
        // An atomic import has undone the others already.
        let others = atomic ? [] : importer.created
        let kept = try Self.withdraw(created, [collection] + others, of: database, if: result.failure != nil)
        try database.close()
        try report(counts, kept, failure: result.failure)
    }

    /// After a failure, deletes those of the collections that the import has created and put nothing into. A new database is removed as a
    /// whole.
    ///
    /// - Returns: what was created, unless it was deleted.
    private static func withdraw(
        _ created: CollectionOptions.Created?,
        _ collections: [Loveseat.Collection],
        of database: Database,
        if failed: Bool
    ) throws -> CollectionOptions.Created? {
        guard failed, created?.isDatabase != true else { return created }
        var kept = created
        // The first one is the command's, which may have been there before.
        for (index, collection) in collections.enumerated() where index > 0 || created != nil {
            guard try CollectionHistory(collection).changeCount(after: 0) == 0 else { continue }
            try database.deleteCollection(name: collection.name, scope: collection.scope.name)
            if index == 0 { kept = nil }
        }
        return kept
    }

    /// Prints the numbers of documents, and what was created.
    ///
    /// - Throws: ``Failure``, with those numbers.
    private func report(_ counts: Counts, _ created: CollectionOptions.Created?, failure: (any Error)?) throws
    {
        let (count, unchanged, replaced) = (counts.documents, counts.unchanged, counts.replaced)
        // A new database is removed again if nothing was saved.
        if let created, failure == nil || count > 0 || !created.isDatabase { Output.notice(created.news) }
        let saved = "\(count.counted("document")) before it \(count == 1 ? "was" : "were") saved"
        let outcome = count == 0 ? "nothing was saved" : saved
        if failure is Interrupted { Output.remark("loveseat: interrupted; \(outcome)") }
        if let error = failure as? LoveseatError {
            let message = error.message.hasSuffix(".") ? String(error.message.dropLast()) : error.message
            throw Failure(error: LoveseatError(error.code, "\(message); \(outcome)"), counts: counts)
        }
        if let failure { throw Failure(error: failure, counts: counts) }
        if json {
            try Output.standard.line(counts.json)
        } else {
            Output.notice(
                count.counted("document") + (unchanged > 0 ? ", \(unchanged) of them unchanged" : "")
                    + (replaced > 0 ? ", \(replaced) of them replaced by later ones with the same ID" : "")
            )
        }
    }

    private static func add(_ source: DocumentSource, to importer: inout Importer) throws {
        var line = ProgressLine()
        defer { line.end() }
        var (shown, share): (Int, Double?) = (0, nil)
        do {
            try source.forEach {
                try checkInterrupt()
                try importer.add($0)
                // The line is updated only when the number has changed, so that the clock is not read for each document.
                if importer.readCount == shown { return }
                (shown, share) = (importer.readCount, source.share(before: $0.end))
                line.show { Self.text(shown, share) }
            }
        } catch {
            // Documents that were read before the error stay, unless all of them are undone. If saving them fails too, the first error
            // explains more.
            if importer.transaction == nil { try? importer.saveReplacing() }
            throw error
        }
        try importer.finish { line.show { Self.text(shown, share) } }
    }

    private static func text(_ count: Int, _ share: Double?) -> String {
        "importing · \(count.counted("document"))" + (share.map { ", \(Int($0 * 100)) % of the file" } ?? "")
    }
}
