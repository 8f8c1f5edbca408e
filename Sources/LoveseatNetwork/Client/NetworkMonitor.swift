private import Dispatch
import NIOConcurrencyHelpers

#if canImport(Network)
private import Network
#else
private import LoveseatPlatform
#endif

/// Reports changes of the host's network: interfaces, addresses, routes.
package final class NetworkMonitor: Sendable {
    package static let shared = NetworkMonitor()

    private struct State {
        var nextNumber = 0
        var observers: [Int: AsyncStream<Void>.Continuation] = [:]
        var source: (any Sendable)?
    }

    private let state = NIOLockedValueBox(State())
    private let queue = DispatchQueue(label: "loveseat.network-monitor")

    /// An element for every change from now on; several in a row may be one.
    package func changes() -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let number = state.withLockedValue { state in
            if state.source == nil { state.source = makeSource() }
            state.nextNumber += 1
            state.observers[state.nextNumber] = continuation
            return state.nextNumber
        }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLockedValue { _ = $0.observers.removeValue(forKey: number) }
        }
        return stream
    }

    private func notifyObservers() {
        for observer in state.withLockedValue({ Array($0.observers.values) }) { observer.yield() }
    }

    #if canImport(Network)
    private func makeSource() -> any Sendable {
        let monitor = NWPathMonitor()
        monitor.pathUpdateHandler = { [weak self] _ in self?.notifyObservers() }
        monitor.start(queue: queue)
        return monitor
    }
    #else
    // <linux/netlink.h> and <linux/rtnetlink.h>, which Swift does not import.
    private static let netlinkFamily: Int32 = 16
    private static let routeProtocol: Int32 = 0
    /// Links, IPv4 addresses and routes, IPv6 addresses and routes.
    private static let groups: UInt32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400

    private struct NetlinkAddress {
        var family = UInt16(netlinkFamily)
        var padding: UInt16 = 0
        var process: UInt32 = 0
        var groups = NetworkMonitor.groups
    }

    /// Nil if the kernel does not report changes; then only the replicator's timer ends a wait.
    private func makeSource() -> (any Sendable)? {
        let type = Int32(SOCK_RAW.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        let descriptor = socket(Self.netlinkFamily, type, Self.routeProtocol)
        guard descriptor >= 0 else { return nil }
        var address = NetlinkAddress()
        let status = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<NetlinkAddress>.size))
            }
        }
        guard status == 0 else {
            close(descriptor)
            return nil
        }
        let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
        source.setEventHandler { [weak self] in
            // The kind of change does not matter.
            var buffer = [UInt8](repeating: 0, count: 8_192)
            while read(descriptor, &buffer, buffer.count) > 0 {}
            self?.notifyObservers()
        }
        source.setCancelHandler { close(descriptor) }
        source.resume()
        return HeldSource(source)
    }

    /// Keeps the source alive. It is only ever touched by its own queue.
    private final class HeldSource: @unchecked Sendable {
        private let source: any DispatchSourceRead
        init(_ source: any DispatchSourceRead) { self.source = source }
        deinit { source.cancel() }
    }
    #endif
}
