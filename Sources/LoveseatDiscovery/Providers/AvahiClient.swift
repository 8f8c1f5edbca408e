#if os(Linux)
import CDiscovery
private import Synchronization

/// An event that a callback of avahi-client reports.
package enum AvahiEvent: Sendable {
    case state(Int32)
    case browsed(interface: UInt32, isIPv6: Bool, isThere: Bool, name: String)
    case text(isThere: Bool, [UInt8])
    case resolved(
        interface: UInt32,
        isIPv6: Bool,
        host: String,
        address: [UInt8],
        port: UInt16,
        text: [UInt8]
    )
    case published(Int32)
}

/// The receivers of callbacks by number. C gets the number instead of a pointer, so that a late callback finds nobody.
package enum AvahiReceivers {
    private struct State {
        var next: UInt = 1
        var receivers: [UInt: @Sendable (AvahiEvent) -> Void] = [:]
    }
    private static let state = Mutex(State())

    package static func add(_ receiver: @escaping @Sendable (AvahiEvent) -> Void) -> UInt {
        state.withLock { state in
            state.receivers[state.next] = receiver
            defer { state.next += 1 }
            return state.next
        }
    }

    package static func remove(_ number: UInt) {
        state.withLock { _ = $0.receivers.removeValue(forKey: number) }
    }

    package static func context(_ number: UInt) -> UnsafeMutableRawPointer? {
        UnsafeMutableRawPointer(bitPattern: number)
    }

    package static func report(_ event: AvahiEvent, to context: UnsafeMutableRawPointer?) {
        let number = UInt(bitPattern: context)
        state.withLock { $0.receivers[number] }?(event)
    }
}

// Avahi's thread calls these. They are functions of the file because a closure could inherit an actor, and would trap.

private func stateChanged(_ context: UnsafeMutableRawPointer?, _ state: Int32) {
    AvahiReceivers.report(.state(state), to: context)
}

private func serviceBrowsed(
    _ context: UnsafeMutableRawPointer?,
    _ interface: Int32,
    _ family: Int32,
    _ event: Int32,
    _ name: UnsafePointer<CChar>?
) {
    // The name may not be UTF-8, and a service without the number of an interface cannot be reached.
    guard let name, let text = String(validatingCString: name), interface > 0 else { return }
    let event = AvahiEvent.browsed(
        interface: UInt32(interface),
        isIPv6: family == 1,
        isThere: event == 0,
        name: text
    )
    AvahiReceivers.report(event, to: context)
}

private func textWatched(
    _ context: UnsafeMutableRawPointer?,
    _ event: Int32,
    _ bytes: UnsafePointer<UInt8>?,
    _ size: Int
) {
    let text = Array(UnsafeBufferPointer(start: bytes, count: size))
    AvahiReceivers.report(.text(isThere: event == 0, text), to: context)
}

private func serviceResolved(
    _ context: UnsafeMutableRawPointer?,
    _ interface: Int32,
    _ family: Int32,
    _ host: UnsafePointer<CChar>?,
    _ address: UnsafePointer<UInt8>?,
    _ addressSize: Int,
    _ port: UInt16,
    _ text: UnsafePointer<UInt8>?,
    _ textSize: Int
) {
    // An address without the number of an interface cannot be connected to.
    guard let host, interface > 0 else { return }
    let event = AvahiEvent.resolved(
        interface: UInt32(interface),
        isIPv6: family == 1,
        host: String(cString: host),
        address: Array(UnsafeBufferPointer(start: address, count: addressSize)),
        port: port,
        text: Array(UnsafeBufferPointer(start: text, count: textSize))
    )
    AvahiReceivers.report(event, to: context)
}

private func servicePublished(_ context: UnsafeMutableRawPointer?, _ state: Int32) {
    AvahiReceivers.report(.published(state), to: context)
}

/// One connection to the Avahi daemon. It is used on one queue.
final class AvahiClient {
    /// Something that was begun with a client.
    struct Object {
        fileprivate let pointer: UnsafeMutableRawPointer
        fileprivate let receiver: UInt
    }

    private let client: OpaquePointer
    private let receiver: UInt

    /// Returns nil if the daemon does not run.
    init?(_ receive: @escaping @Sendable (AvahiEvent) -> Void) {
        var error: UnsafePointer<CChar>?
        let receiver = AvahiReceivers.add(receive)
        guard let client = lv_avahi_open(stateChanged, AvahiReceivers.context(receiver), &error) else {
            AvahiReceivers.remove(receiver)
            return nil
        }
        self.client = client
        self.receiver = receiver
    }

    deinit {
        AvahiReceivers.remove(receiver)
        lv_avahi_close(client)
    }

    /// The name of this host, with its domain.
    var host: String {
        var buffer = [CChar](repeating: 0, count: 256)
        lv_avahi_host(client, &buffer, buffer.count)
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    private func object(
        _ receive: @escaping @Sendable (AvahiEvent) -> Void,
        _ make: (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?
    ) -> Object? {
        let receiver = AvahiReceivers.add(receive)
        guard let pointer = make(AvahiReceivers.context(receiver)) else {
            AvahiReceivers.remove(receiver)
            return nil
        }
        return Object(pointer: pointer, receiver: receiver)
    }

    func browse(_ type: String, _ receive: @escaping @Sendable (AvahiEvent) -> Void) -> Object? {
        object(receive) { lv_avahi_browse(client, type, serviceBrowsed, $0) }
    }

    func endBrowse(_ object: Object) {
        AvahiReceivers.remove(object.receiver)
        lv_avahi_end_browse(client, object.pointer)
    }

    func watch(_ name: String, _ type: String, _ receive: @escaping @Sendable (AvahiEvent) -> Void) -> Object?
    {
        object(receive) { lv_avahi_watch(client, name, type, textWatched, $0) }
    }

    func endWatch(_ object: Object) {
        AvahiReceivers.remove(object.receiver)
        lv_avahi_end_watch(client, object.pointer)
    }

    func resolve(
        _ name: String,
        _ type: String,
        isIPv6: Bool,
        _ receive: @escaping @Sendable (AvahiEvent) -> Void
    ) -> Object? {
        object(receive) { lv_avahi_resolve(client, name, type, isIPv6 ? 1 : 0, serviceResolved, $0) }
    }

    func endResolve(_ object: Object) {
        AvahiReceivers.remove(object.receiver)
        lv_avahi_end_resolve(client, object.pointer)
    }

    func group(_ receive: @escaping @Sendable (AvahiEvent) -> Void) -> Object? {
        object(receive) { lv_avahi_group(client, servicePublished, $0) }
    }

    func endGroup(_ object: Object) {
        AvahiReceivers.remove(object.receiver)
        lv_avahi_end_group(client, object.pointer)
    }

    /// Returns 0 or an error.
    func publish(
        _ group: Object,
        interface: Int32,
        _ name: String,
        _ type: String,
        subtypes: [String],
        port: UInt16,
        text: [UInt8]
    ) -> Int32 {
        Self.withCStrings(subtypes) { subtypes in
            lv_avahi_publish(
                client,
                group.pointer,
                interface,
                name,
                type,
                subtypes,
                port,
                text,
                text.count
            )
        }
    }

    func update(_ group: Object, interface: Int32, _ name: String, _ type: String, text: [UInt8]) -> Int32 {
        lv_avahi_update(client, group.pointer, interface, name, type, text, text.count)
    }

    /// Why the last object could not be made.
    var lastError: Int32 { lv_avahi_last_error(client) }

    static func message(_ error: Int32) -> String { String(cString: lv_avahi_error(error)) }

    private static func withCStrings<Result>(
        _ strings: [String],
        _ done: [UnsafePointer<CChar>?] = [],
        _ body: ([UnsafePointer<CChar>?]) -> Result
    ) -> Result {
        guard done.count < strings.count else { return body(done + [nil]) }
        return strings[done.count].withCString { withCStrings(strings, done + [$0], body) }
    }
}
#endif
