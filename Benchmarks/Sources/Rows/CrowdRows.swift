import Foundation
import Glibc
import Loveseat

/// Rows about many peers at once, friendly and not.
public enum CrowdRows {
    /// So many peers at once, each with a database of its own, pushing its documents and pulling everybody's.
    public static func crowd(_ peers: Int, documents: Int) async throws -> [Row] {
        let scratch = try Scratch()
        let server = try PeerRows(scratch: scratch, ["tls"])
        let before = residentBytes(of: server.peer.processIdentifier)
        var databases: [Database] = []
        for peer in 0..<peers {
            let database = try scratch.database("peer\(peer)")
            let collection = try database.defaultCollection()
            try await database.write { transaction in
                for number in 0..<documents {
                    let document = try Document(id: "peer\(peer)-\(number)", json: sampleText(number))
                    try transaction.save(document, in: collection)
                }
            }
            databases.append(database)
        }
        let clock = ContinuousClock()
        let start = clock.now
        // The second time everybody gets what the others pushed meanwhile.
        var most = before
        for _ in 0..<2 {
            let replicators = try databases.map { database in
                Replicator(server.configuration(try database.defaultCollection(), .pushAndPull))
            }
            for replicator in replicators { replicator.start() }
            for replicator in replicators {
                if let error = await replicator.waitUntilStopped().error { throw error }
                most = max(most, residentBytes(of: server.peer.processIdentifier))
            }
        }
        let seconds = (clock.now - start).inSeconds
        for database in databases {
            guard try database.defaultCollection().count == peers * documents else {
                fatalError("\(database.name) does not have everything")
            }
            try await database.close()
        }
        server.end()
        let moved = Double(peers * documents * (peers + 1))
        return [
            .limit(
                "memory of the listener for each of \(peers) peers at once",
                Double(most - before) / 1e6 / Double(peers),
                unit: "MB",
                atMost: 2
            ),
            .speed("documents that \(peers) peers move through it", moved / seconds, unit: "documents/s", atLeast: 10_000),
        ]
    }

    /// A good peer's speed beside a thousand TLS handshakes that go no further and a thousand that crawl.
    public static func siege(_ count: Int) async throws -> [Row] {
        func push(_ besieges: Bool) async throws -> Double {
            let scratch = try Scratch()
            let near = try scratch.database("near")
            let collection = try near.defaultCollection()
            try await near.write { transaction in
                for number in 0..<count {
                    try transaction.save(try Document(id: "doc\(number)", json: sampleText(number)), in: collection)
                }
            }
            let server = try PeerRows(scratch: scratch, ["tls"])
            let siege = besieges ? Siege(port: UInt16(server.url.port ?? 0)) : nil
            let clock = ContinuousClock()
            let start = clock.now
            let replicator = Replicator(server.configuration(collection, .push))
            replicator.start()
            if let error = await replicator.waitUntilStopped().error { throw error }
            let seconds = (clock.now - start).inSeconds
            siege?.end()
            server.end()
            try await near.close()
            return Double(count) / seconds
        }
        var rates: [Bool: [Double]] = [:]
        for _ in 0..<3 { for besieges in [false, true] { rates[besieges, default: []].append(try await push(besieges)) } }
        return [
            .ratio(
                "push beside 1000 half-open and 1000 crawling TLS handshakes against alone",
                (rates[true] ?? []).median,
                of: (rates[false] ?? []).median,
                unit: "documents/s",
                floor: 0.8
            )
        ]
    }
}

/// Two thousand sockets that hold a listener up; one that is closed is opened again.
///
/// Unchecked, since `Thread` and `DispatchSemaphore` are safe but do not say so.
private final class Siege: @unchecked Sendable {
    private let thread: Thread
    private let finished = DispatchSemaphore(value: 0)

    init(port: UInt16) {
        let box = Box()
        let ready = DispatchSemaphore(value: 0)
        let finished = finished
        thread = Thread {
            var sockets = [Int32](repeating: -1, count: 2_000)
            // The beginning of a ClientHello of 512 bytes.
            let hello: [UInt8] = [0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xFC, 0x03, 0x03]
            var said = [Int](repeating: 0, count: 2_000)
            var isFirst = true
            while !box.isOver {
                for index in sockets.indices {
                    if sockets[index] < 0 {
                        sockets[index] = Self.connect(port)
                        said[index] = index < 1_000 ? hello.count : 1
                        _ = send(sockets[index], hello, said[index], Int32(MSG_NOSIGNAL))
                    } else if index >= 1_000, said[index] < 500 {
                        // A byte a second; an error means that the listener has had enough.
                        var byte = said[index] < hello.count ? hello[said[index]] : 0
                        said[index] += 1
                        if send(sockets[index], &byte, 1, Int32(MSG_NOSIGNAL)) < 0 { Self.drop(&sockets[index]) }
                    }
                    if sockets[index] >= 0 {
                        var byte: UInt8 = 0
                        if recv(sockets[index], &byte, 1, Int32(MSG_DONTWAIT)) == 0 { Self.drop(&sockets[index]) }
                    }
                }
                if isFirst { ready.signal() }
                isFirst = false
                // The pace of the attack, which is what is measured against; nothing waits for it.
                usleep(1_000_000)
            }
            for index in sockets.indices where sockets[index] >= 0 { close(sockets[index]) }
            finished.signal()
        }
        self.box = box
        thread.start()
        ready.wait()
    }

    /// Its one field is under a lock.
    private final class Box: @unchecked Sendable {
        private let lock = NSLock()
        private var over = false
        var isOver: Bool {
            get { lock.withLock { over } }
            set { lock.withLock { over = newValue } }
        }
    }
    private let box: Box

    private static func drop(_ socket: inout Int32) {
        close(socket)
        socket = -1
    }

    private static func connect(_ port: UInt16) -> Int32 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        _ = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        return descriptor
    }

    func end() {
        box.isOver = true
        finished.wait()
    }
}
