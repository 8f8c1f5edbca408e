import Dispatch
import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import Synchronization

/// A listener that lives as long as the process.
final class FuzzedServer: Sendable {
    let client: RawClient?

    init() {
        let started = DispatchSemaphore(value: 0)
        let port = PortBox()
        Task.detached {
            do { port.set(try await Self.start()) } catch {
                fatalError("the listener to fuzz does not start: \(error)")
            }
            started.signal()
        }
        started.wait()
        client = port.value.map { RawClient(port: $0) }
    }

    private static func start() async throws -> UInt16? {
        let scratch = try Scratch()
        let database = try scratch.database("main")
        var configuration = CouchDBListenerConfiguration(
            databases: ["db": try database.defaultCollection()],
            of: database
        )
        configuration.disableTLS = true
        configuration.networkInterface = "127.0.0.1"
        configuration.authenticator = ListenerPasswordAuthenticator(secret: {
            $0 == "a" ? .password("a") : nil
        })
        let listener = CouchDBListener(configuration)
        try await listener.start()
        kept.set(scratch)
        // Static objects are not destroyed.
        atexit { kept.remove() }
        return listener.port
    }
}

private let kept = KeptFolder()

/// A port that becomes known.
private final class PortBox: Sendable {
    private let port = Mutex<UInt16?>(nil)
    var value: UInt16? { port.withLock { $0 } }
    func set(_ value: UInt16?) { port.withLock { $0 = value } }
}

/// A folder that is removed when the process ends.
private final class KeptFolder: Sendable {
    private let scratch = Mutex<Scratch?>(nil)
    func set(_ folder: Scratch) { scratch.withLock { $0 = folder } }
    func remove() {
        // The process ends: the system clears away what is left.
        if let path = scratch.withLock({ $0?.path }) { try? FileManager.default.removeItem(atPath: path) }
    }
}
