import ArgumentParser
import Foundation
import Loveseat
import LoveseatInspector

struct Push: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Send changes to a peer.")
    @OptionGroup var options: SyncOptions
    func run() async throws { try await options.run(.push) }
}

struct Pull: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Fetch changes from a peer.")
    @OptionGroup var options: SyncOptions
    func run() async throws { try await options.run(.pull) }
}

struct Sync: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Push and pull, until both databases are the same.",
        discussion: """
            Ends when everything is transferred. With --continuous, it goes on until it is interrupted, and connects again after \
            the peer was restarted.

            EXAMPLES
              loveseat sync trips ws://192.168.1.7:55990/trips --user ana \\
                --continuous
              loveseat push trips https://couch.example.org/trips --user ana \\
                --create-target
            """
    )
    @OptionGroup var options: SyncOptions
    func run() async throws { try await options.run(.pushAndPull) }
}

struct SyncOptions: ParsableArguments {
    @OptionGroup var argument: DatabaseArgument
    @OptionGroup var peer: PeerOptions
    @Flag(help: "Go on with later changes on either side until interrupted.")
    var continuous = false
    @Flag(help: "Compare all documents again; do not send those that the peer is known to have.")
    var reset = false
    @Flag(help: "Compare all documents again, and offer them all to the peer.")
    var resetMarks = false
    @Option(
        help: "The maximum number of attempts to connect. 0 is the default: 1, with --continuous no limit."
    )
    var maxAttempts: UInt?
    @Option(help: "The maximum wait between two attempts, in seconds; 0 for the default.")
    var maxWait = ReplicatorConfiguration.defaultMaxAttemptsWaitTime
    @Option(help: "How long the connection may be idle, in seconds, before a ping checks the peer.")
    var heartbeat = ReplicatorConfiguration.defaultHeartbeat
    @Flag(help: "Keep documents to which the user loses access.")
    var noAutoPurge = false
    @Flag(help: "Also push changes that were made here under another user name.")
    var asThisUser = false
    @Flag(
        help: "Purge documents to which the user loses access, even if they have edits that were not pushed."
    )
    var purgeUnpushedEdits = false
    @Flag(help: "Send and accept only the difference if a peer has an earlier revision.")
    var delta = false
    @OptionGroup var logging: LogOptions
    @Flag(help: "Print the result as one JSON object.")
    var json = false

    func validate() throws {
        for (name, value) in [("--max-wait", maxWait), ("--heartbeat", heartbeat)] {
            guard value >= 0, value.isFinite else {
                throw ValidationError("\(name) must be 0 or more seconds.")
            }
        }
    }

    func run(_ type: ReplicatorType) async throws {
        guard type != .pull || !peer.createTarget else {
            throw LoveseatError(
                .invalidParameter,
                "--create-target is for push and sync: a pull would create the database that it pulls from"
            )
        }
        try logging.begin()
        Signals.begin()
        var choice = CollectionChoice(isFixed: !peer.collections.isEmpty)
        // Ends: see CollectionChoice.
        while try await !replicate(type, &choice) {}
    }

    private func configuration(_ database: Database, _ type: ReplicatorType, _ choice: CollectionChoice)
        throws -> ReplicatorConfiguration
    {
        var configuration = try choice.applied(to: peer).configuration(database, type, connects: true)
        configuration.continuous = continuous
        // A restart of the server must not end a continuous replication.
        configuration.reconnectsAfterGoingAway = continuous
        configuration.heartbeat = heartbeat
        configuration.maxAttemptWaitTime = maxWait
        configuration.enableAutoPurge = !noAutoPurge
        configuration.adoptsOtherUsersChanges = asThisUser
        configuration.purgesUnpushedEdits = purgeUnpushedEdits
        configuration.enableDeltaSync = delta
        // A user who types a command should see at once that the peer cannot be reached.
        let attempts = maxAttempts ?? 0
        configuration.maxAttempts = attempts == 0 && !continuous ? 1 : attempts
        return configuration
    }

    /// Replicates the chosen collections.
    ///
    /// - Returns: false if there are other collections to try instead.
    private func replicate(_ type: ReplicatorType, _ choice: inout CollectionChoice) async throws -> Bool {
        let database = try argument.open()
        let created = try type == .push ? [] : choice.applied(to: peer).missingCollections(of: database)
        let configuration = try configuration(database, type, choice)
        let leftOut = try choice.leftOut(of: database)
        let replicator = Replicator(configuration)
        Signals.onInterrupt { replicator.stop() }

        let failures = replicator.documentReplications
        let counting = Task { await Self.report(failures) }
        let reporting = continuous ? report(replicator, of: database) : nil
        defer { reporting?.control.close() }
        replicator.start(reset: reset, resetMarks: resetMarks)
        // A signal that arrived before the replicator started.
        if Signals.interruption != nil { replicator.stop() }
        let (status, seconds, hasBegun) = await follow(replicator) {
            leftOut.report()
            for name in created {
                Output.notice("loveseat: created the collection \(name.fullName) in \(database.name)")
            }
        }
        reporting?.monitor.stop()
        var counts = await counting.value
        counts.notReplicated = leftOut
        if type != .pull {
            counts.refusedEarlier = max(0, try replicator.refusedDocumentCount() - counts.refused)
        }
        let isPaired = try !database.pairedPeers().isEmpty
        let goesOn = try status.error.map {
            try choice.narrow(after: $0, configuration, of: database, creates: type != .push)
        }
        // The peer may not have confirmed them: a mistyped name must not stay.
        if !hasBegun || status.error != nil {
            try removeEmpty(created, from: database, wasReported: hasBegun)
        }
        try await database.close()
        if goesOn == true { return false }
        let error = status.error.map { advised(choice.reported($0), configuration, isPaired: isPaired) }
        let code = error?.exitCode ?? exitCode(counts)
        try summarize(counts, status, error: error, code, seconds: seconds)
        if let error { throw error }
        if code != 0 { throw ExitCode(code) }
        return true
    }

    /// Removes collections that this run created, if nothing came into them.
    private func removeEmpty(_ names: [CollectionName], from database: Database, wasReported: Bool) throws {
        for name in names {
            // Another process may have deleted it.
            guard let collection = try database.collection(name: name.name, scope: name.scope) else {
                continue
            }
            try database.write { transaction in
                if try transaction.count(in: collection) > 0 { return }
                try transaction.deleteCollection(name: name.name, scope: name.scope)
                if wasReported {
                    Output.notice("loveseat: removed the empty collection \(name.fullName) again")
                }
            }
        }
    }

    /// Shows a replication's progress until it ends. `begun` runs when the peer has accepted the collections.
    private func follow(_ replicator: Replicator, begun: () -> Void) async -> (
        status: Replicator.Status, seconds: Double, hasBegun: Bool
    ) {
        var (bar, notice, hasBegun) = (ProgressBar(), String?.none, false)
        for await status in replicator.statuses {
            if let news = replicator.notice, notice == nil {
                notice = news
                Output.remark("loveseat: \(news)")
            }
            let isUnderWay = status.activity == .idle || status.progress.compared > 0
            if !hasBegun, status.error == nil, isUnderWay {
                hasBegun = true
                begun()
            }
            bar.show(status)
        }
        bar.end()
        let status = await replicator.waitUntilStopped()
        // There was nothing to compare.
        if !hasBegun, status.error == nil, Signals.interruption == nil {
            hasBegun = true
            begun()
        }
        return (status, bar.seconds, hasBegun)
    }

    /// The exit code of a replication that ended without an error.
    private func exitCode(_ counts: Counts) -> Int32 {
        if let interruption { return 128 + interruption }
        // A continuous replication tries failed documents again until it is ended.
        // Documents that the peer refused in earlier runs count as well: the peer lacks them, and would refuse them again.
        return counts.failed + counts.inConflict + counts.refusedEarlier > 0 && !continuous ? 1 : 0
    }

    /// Lets `loveseat top` and the inspector see a continuous replication, which goes on without that if it is not possible.
    private func report(_ replicator: Replicator, of database: Database) -> (
        monitor: PeerMonitor, control: ControlServer
    )? {
        do {
            let monitor = try PeerMonitor(database)
            let backend = ServingBackend(database: database, monitor: monitor)
            let folder = argument.folder
            let control = try ControlServer(folder: folder) { request, reply in
                switch request {
                case .peers(let number): try reply(.output(await monitor.report(after: number).description))
                case .pending(let key): try reply(.output(try await monitor.pending(over: key).description))
                case .edit(let edit): try reply(.output(try await backend.perform(edit).text))
                case .showPairing, .forgetPeer: throw ControlClient.notServing(folder)
                }
            }
            monitor.observe(replicator)
            monitor.start()
            return (monitor, control)
        } catch {
            Output.remark("loveseat: `loveseat top` cannot see this process: \(error)")
            return nil
        }
    }

    /// The signal that interrupted a single pass. A continuous replication ends by a signal.
    private var interruption: Int32? { continuous ? nil : Signals.interruption }

    private struct Counts {
        var pushed = 0
        var pulled = 0
        /// Documents that the peer took away.
        var takenAway = 0
        /// Those that it refused in earlier runs, and was not sent again.
        var refusedEarlier = 0
        /// The collections that were not replicated.
        var notReplicated: [LeftOutCollection] = []
        private var failures: [ExactText: (push: LoveseatError?, pull: LoveseatError?)] = [:]
        private var leftOut: Swift.Set<ExactText> = []

        /// Documents whose last attempt in this run failed.
        var failed: Int { failures.count - inConflict }
        /// Documents that the peer stored beside a version of its own, which was not pulled.
        var inConflict: Int { failures.values.count { $0.pull == nil && $0.push?.isStoredAtPeer == true } }
        /// Documents that the peer refused for good in this run, which are among the failed ones.
        var refused: Int { failures.values.count { $0.push?.isFinalRefusal == true } }
        /// Pulled documents that a filter leaves out, and that did not fail in another way.
        var excluded: Int { leftOut.count { failures[$0] == nil } }

        /// Counts a document once, however many attempts there are.
        mutating func add(_ document: ReplicatedDocument, isPush: Bool) {
            if document.error != nil || !failures.isEmpty { noteFailure(document, isPush: isPush) }
            if document.error != nil { return }
            if document.flags.contains(.accessRemoved) {
                takenAway += 1
            } else if isPush {
                pushed += 1
            } else {
                pulled += 1
            }
        }

        private mutating func noteFailure(_ document: ReplicatedDocument, isPush: Bool) {
            let id = ExactText("\(document.scope).\(document.collection)/\(document.id)")
            let isLeftOut = document.error == .rejectedByPullFilter
            if isLeftOut { leftOut.insert(id) }
            var failure = failures[id] ?? (nil, nil)
            let error = isLeftOut ? nil : document.error
            if isPush { failure.push = error } else { failure.pull = error }
            failures[id] = failure.push == nil && failure.pull == nil ? nil : failure
        }
    }

    private static func report(_ events: Feed<DocumentReplication>) async -> Counts {
        var counts = Counts()
        for await event in events {
            if event.isPush { counts.pushed += event.missed } else { counts.pulled += event.missed }
            for document in event.documents {
                counts.add(document, isPush: event.isPush)
                guard let error = document.error, error != .rejectedByPullFilter else { continue }
                let name = "\(document.scope).\(document.collection)/\(document.id)"
                let problem =
                    error.isStoredAtPeer
                    ? "conflict in" : event.isPush ? "cannot push" : "cannot pull"
                Output.remark("loveseat: \(problem) \(name): \(error.message)")
            }
        }
        return counts
    }

    private func summarize(
        _ counts: Counts,
        _ status: Replicator.Status,
        error: LoveseatError?,
        _ code: Int32,
        seconds: Double
    ) throws {
        if json {
            try Output.standard.line([
                "pushed": JSONValue(counts.pushed), "pulled": JSONValue(counts.pulled),
                "failed": JSONValue(counts.failed), "inConflict": JSONValue(counts.inConflict),
                "takenAway": JSONValue(counts.takenAway),
                "excluded": JSONValue(counts.excluded),
                "refusedEarlier": JSONValue(counts.refusedEarlier), "interrupted": .bool(interruption != nil),
                "notReplicated": .array(counts.notReplicated.map(\.json)),
                "bytes": JSONValue(status.progress.completed),
                "seconds": JSONValue((seconds * 1_000).rounded() / 1_000),
                "error": error.map { .string($0.message) } ?? .null, "exitCode": JSONValue(Int(code)),
            ])
        } else {
            let all = counts.pushed + counts.pulled
            let rate = Int(Double(all) / max(seconds, 0.001))
            let time = (seconds * 1_000).rounded() / 1_000
            var parts = ["\(counts.pushed) pushed", "\(counts.pulled) pulled"]
            if counts.takenAway > 0 { parts.append("\(counts.takenAway) taken away") }
            if counts.excluded > 0 { parts.append("\(counts.excluded) left out by the filter") }
            parts.append("\(counts.failed) failed")
            if counts.inConflict > 0 {
                parts.append("\(counts.inConflict) in conflict (`sync` or `pull` fetches the peer's version)")
            }
            if counts.refusedEarlier > 0 {
                parts.append("\(counts.refusedEarlier) refused earlier (`pending --refused` lists them)")
            }
            let behind = counts.notReplicated.filter { $0.documents > 0 }
            let end =
                (behind.isEmpty ? "" : "; not replicated: \(behind.text)")
                + (interruption == nil ? "" : "; interrupted: run it again to continue")
            Output.notice(
                "\(parts.joined(separator: ", ")) in \(time) s (\(rate.counted("document"))/s)\(end)"
            )
        }
    }
}
