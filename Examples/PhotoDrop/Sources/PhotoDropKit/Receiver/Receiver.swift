import Foundation
import Loveseat
import LoveseatCouchDB
import LoveseatDiscovery
import PhotoDropCore
import Synchronization

/// A session that receives photos: a database that nobody can read, a listener with a new key, and a folder.
package final class Receiver: Sendable {
    /// Why a session ended.
    package enum End: Hashable, Sendable {
        /// The wanted number of photos is here.
        case complete
        /// Nobody was connected for too long.
        case idle
        /// It lasted as long as a session may.
        case expired
        case stopped

        package var text: String {
            switch self {
            case .complete: "all photos are here"
            case .idle: "nobody was connected for a while"
            case .expired: "the session lasted a day"
            case .stopped: "stopped"
            }
        }
    }

    /// The type of service that an advertised session has.
    package static let serviceType = "_photodrop._tcp"
    private static let tick = Duration.milliseconds(100)
    private static let retryInterval = Duration.seconds(5)
    /// How long a complete session waits for senders to say goodbye.
    private static let farewell = Duration.seconds(5)

    package let record: SessionRecord
    package let hub = EventHub()
    package let database: Database
    package let saver: PhotoSaver
    package let options: ReceiverOptions
    private let temporary: TemporaryFolder
    private let listener: URLEndpointListener
    private let couchListener: CouchDBListener?
    private let peers: Feed<ListenerPeer>
    private let transfers: Feed<BlobTransfer>
    private let filter: DropFilter
    private let board: SenderBoard
    private let ends: AsyncStream<End>
    private let end: AsyncStream<End>.Continuation

    /// Creates a session, or opens a kept one again.
    ///
    /// - Parameters:
    ///   - options: The settings.
    ///   - kept: The folder of a kept session; nil for a new one.
    /// - Throws: ``DropError`` or `LoveseatError` if there is no such session, or a folder or key cannot be created.
    package init(_ options: ReceiverOptions, resuming kept: String? = nil) throws {
        var options = options
        let folder: PhotoFolder
        if let kept {
            temporary = try TemporaryFolder(existing: kept)
            record = try SessionRecord.read(at: temporary.path)
            options.folder = record.folder
            if options.port == 0, options.usesEarlierPort { options.port = record.port }
            folder = try PhotoFolder(path: options.folder, session: record.id)
        } else {
            record = try SessionRecord(
                // A later process may have another working directory.
                folder: URL(filePath: options.folder).standardizedFileURL.path,
                port: options.port,
                identity: options.identity
            )
            folder = try PhotoFolder(path: options.folder, session: record.id)
            temporary = try TemporaryFolder(session: record.id)
        }
        self.options = options
        (ends, end) = AsyncStream.makeStream()
        let space = temporary
        let filter = DropFilter(
            limits: options.limits,
            isForOneSender: options.maximumSenders == 1,
            allowsRecall: options.allowsRecall,
            strips: options.strips,
            freeBytes: { space.freeBytes }
        )
        self.filter = filter
        board = SenderBoard(hub: hub)
        database = try Database(
            name: DropCode.databaseName,
            config: DatabaseConfiguration(directory: temporary.path)
        )
        let collection = try database.defaultCollection()
        for document in try collection.documents() { filter.restore(document) }
        saver = try PhotoSaver(
            database: database,
            folder: folder,
            strips: options.strips,
            deletesFiles: options.deletesFiles,
            maximumBytes: options.limits.photoBytes,
            hub: hub,
            board: board
        )
        var configuration = URLEndpointListenerConfiguration(collections: [collection])
        configuration.databaseName = DropCode.databaseName
        configuration.port = options.port
        configuration.networkInterface = options.interface
        configuration.disableTLS = options.disablesTLS
        if !options.disablesTLS { configuration.tlsIdentity = try record.identity() }
        configuration.writeOnly = true
        if options.isAdvertised {
            configuration.advertise = ServiceAdvertisement(type: Self.serviceType, name: options.name)
        }
        configuration.maximumConnections = options.maximumSenders
        configuration.incomingFilter = { filter.refusal($0, $1, $2) }
        configuration.authenticator = DropAuthenticator(
            session: record.id,
            secret: record.secret
        )
        couchListener =
            options.servesCouchDB
            ? CouchDBWire.listener(collection, of: database, options: options, filter: filter) : nil
        configuration.sharesPortWith = couchListener
        listener = URLEndpointListener(configuration)
        peers = listener.peerChanges
        transfers = listener.blobTransfers
    }

    /// The folder of the session, for resuming it.
    package var sessionFolder: String { temporary.path }

    /// The session's key and certificate.
    ///
    /// - Throws: `data` if the session's record is damaged.
    package func identity() throws(DropError) -> TLSIdentity { try record.identity() }

    /// The path of the folder that photos are saved in.
    package var folder: String { options.folder }

    /// Starts to listen, and returns the session's code.
    package func start() async throws -> DropCode {
        try await listener.start()
        guard let pin = listener.tlsIdentity?.certs.first?.fingerprint,
            let pin = DropPin(fingerprint: pin)
        else { throw DropError(.disk, "the listener has not started") }
        if options.keeps { try remember(options, port: listener.port) }
        return DropCode(
            urls: Self.shown(listener.urls ?? []),
            pin: pin,
            secret: record.secret.full,
            session: record.id,
            name: options.name,
            hasCouchDB: options.servesCouchDB
        )
    }

    /// Starts to listen without encryption, and returns the code for the original PhotoDrop.
    package func startWithoutTLS() async throws -> LegacyCode {
        try await listener.start()
        guard let url = Self.shown(listener.urls ?? []).first,
            let code = LegacyCode(
                url: url,
                username: DropCode.username(session: record.id),
                password: record.secret.full
            )
        else { throw DropError(.disk, "the listener has not started") }
        if options.keeps { try remember(options, port: listener.port) }
        return code
    }

    /// Writes what a later process needs to resume the session.
    private func remember(_ options: ReceiverOptions, port: UInt16?) throws(DropError) {
        guard let port else { return }
        var record = record
        record.port = port
        record.options = options
        try record.write(to: temporary)
    }

    /// The URLs for a code: those of this computer alone only if there are no others.
    private static func shown(_ urls: [URL]) -> [URL] {
        func host(_ url: URL) -> String {
            (url.host(percentEncoded: false) ?? "").trimmingCharacters(in: ["[", "]"])
        }
        let usable = urls.filter { !host($0).hasPrefix("fe80:") }
        let others = usable.filter { !host($0).hasPrefix("127.") && host($0) != "::1" }
        return others.isEmpty ? usable : others
    }

    /// Gives up a session that could not be started.
    package func cancel() async { await close() }

    /// Ends the session.
    package func stop() { end.yield(.stopped) }

    /// Saves photos until the session ends, and returns why it did.
    ///
    /// - Throws: An error of the disk.
    package func run() async throws -> End {
        let reason: End
        do {
            reason = try await withThrowingTaskGroup(of: End?.self) { group in
                group.addTask { try await self.save() }
                group.addTask { await self.followPeers() }
                group.addTask { await self.followTransfers() }
                group.addTask { await self.watch() }
                group.addTask {
                    for await reason in self.ends { return reason }
                    return nil
                }
                defer { group.cancelAll() }
                while let result = try await group.next() {
                    if let result { return result }
                }
                return .stopped
            }
        } catch {
            await close()
            throw error
        }
        let port = listener.port
        // What senders have been told is stored is saved, too.
        await listener.stop()
        try? await saver.saveNew()
        if await stays {
            var options = options
            // Resumed with the same number of photos, it would end at once.
            if reason == .complete { options.count = nil }
            try? remember(options, port: port)
        }
        hub.publish(.end(reason: reason.text))
        await close()
        return reason
    }

    /// Whether the session stays when it ends: photos that could not be saved are in it only.
    package var stays: Bool { get async { if options.keeps { true } else { await saver.failureCount > 0 } } }

    private func close() async {
        await listener.stop()
        hub.finish()
        let stays = await stays
        try? await database.close()
        if stays {
            try? temporary.keep()
        } else {
            temporary.remove()
        }
    }

    private func save() async throws -> End? {
        // From before the first look on, so that nothing is missed.
        let changes = try database.defaultCollection().changes()
        try await saver.saveNew()
        try await saver.removeRecalled()
        for await change in changes {
            try await saver.saveNew()
            try await saver.removeRecalled(among: change.isIncomplete ? nil : change.documentIDs)
        }
        return nil
    }

    private func followPeers() async -> End? {
        for await peer in peers {
            guard let name = peer.identity.name, let sender = filter.sender(ofConnection: name) else {
                continue
            }
            if peer.status.activity == .stopped {
                filter.forgetConnection(name)
                board.disconnected(name, sender)
            } else {
                board.connected(name, sender)
            }
        }
        return nil
    }

    private func followTransfers() async -> End? {
        for await transfer in transfers where filter.isPhoto(transfer) { board.transferred(transfer) }
        return nil
    }

    /// Ends the session when nobody is connected for too long, or when everything wanted is here; and retries.
    private func watch() async -> End? {
        let start = ContinuousClock.now
        var lastConnected = start
        var lastRetry = start
        var completeSince: ContinuousClock.Instant?
        while (try? await Task.sleep(for: Self.tick)) != nil {
            let now = ContinuousClock.now
            let connections = Int(listener.status.connectionCount) + (couchListener?.connectionCount ?? 0)
            if connections > 0 { lastConnected = now }
            if let count = options.count, await saver.savedCount >= count {
                let since = completeSince ?? now
                completeSince = since
                let isQuiet = connections == 0 && board.isEverySenderDone
                if isQuiet || now - since > Self.farewell { return .complete }
            }
            if now - lastConnected > .seconds(options.idleSeconds) { return .idle }
            if now - start > .seconds(options.limits.seconds) { return .expired }
            if now - lastRetry > Self.retryInterval {
                lastRetry = now
                try? await saver.retry()
            }
        }
        return nil
    }
}
