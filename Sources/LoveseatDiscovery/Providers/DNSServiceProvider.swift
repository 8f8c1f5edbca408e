#if canImport(dnssd)
private import Dispatch
package import LoveseatDiscoveryCore
import LoveseatModel
import LoveseatPlatform
private import Synchronization
private import dnssd

/// DNS-SD through Apple's mDNSResponder.
// @unchecked because everything that changes is touched on the queue only, which mDNSResponder's callbacks come on, too.
package final class DNSServiceProvider: DiscoveryProvider, @unchecked Sendable {
    package static let shared = DNSServiceProvider()
    private static let domain = "local."
    private static let maximumAddresses = 16

    /// The context of a callback: a closure, which lives as long as the operation.
    private final class Receiver<Event>: @unchecked Sendable {
        let receive: (Event) -> Void
        init(_ receive: @escaping (Event) -> Void) { self.receive = receive }
        var context: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }
        static func from(_ context: UnsafeMutableRawPointer?) -> Receiver? {
            context.map { Unmanaged<Receiver>.fromOpaque($0).takeUnretainedValue() }
        }
    }

    /// An operation of mDNSResponder, which ends when this is released on the queue.
    private final class Operation {
        let reference: DNSServiceRef
        let receiver: AnyObject
        init(_ reference: DNSServiceRef, _ receiver: AnyObject, _ queue: DispatchQueue) {
            self.reference = reference
            self.receiver = receiver
            _ = DNSServiceSetDispatchQueue(reference, queue)
        }
        deinit { DNSServiceRefDeallocate(reference) }
    }

    private typealias BrowseEvent = (interface: UInt32, isThere: Bool, name: String)
    private typealias HostEvent = (interface: UInt32, host: String, port: UInt16, text: [UInt8])
    private typealias AddressEvent = (isThere: Bool, bytes: [UInt8])
    private typealias RecordEvent = (isThere: Bool, bytes: [UInt8])
    private typealias RegisterEvent = (error: DNSServiceErrorType, name: String)

    private struct Browse {
        var operation: Operation?
        var watches: [ServiceName: Operation] = [:]
        var seen: [ServiceName: Set<Link>] = [:]
    }

    private struct Resolution {
        var operation: Operation?
        var addresses: [UInt32: Operation] = [:]
        var found: [UInt32: MulticastNode.Location] = [:]
    }

    private let queue = DispatchQueue(label: "loveseat.dns-sd")
    private var browses: [Int: Browse] = [:]
    private var resolutions: [Int: Resolution] = [:]
    private var registrations: [Int: Operation] = [:]
    private let numbers = Atomic(0)

    private var newNumber: Int { numbers.add(1, ordering: .relaxed).newValue }

    private static func text(_ pointer: UnsafePointer<CChar>?) -> String {
        pointer.flatMap { String(validatingCString: $0) } ?? ""
    }

    private func operation<Event>(
        _ receive: @escaping (Event) -> Void,
        _ start: (inout DNSServiceRef?, UnsafeMutableRawPointer) -> DNSServiceErrorType
    ) -> Operation? {
        let receiver = Receiver(receive)
        var reference: DNSServiceRef?
        guard start(&reference, receiver.context) == kDNSServiceErr_NoError, let reference else { return nil }
        return Operation(reference, receiver, queue)
    }

    // MARK: Browsing

    package func browse(
        _ type: ServiceType,
        subtype: String?,
        report: @escaping @Sendable (BrowseReport) -> Void
    ) -> DiscoveryTask {
        let id = newNumber
        queue.async { [self] in
            let suffix = subtype.map { ",\($0.hasPrefix("_") ? "" : "_")\($0)" } ?? ""
            browses[id] = Browse()
            browses[id]?.operation = operation { [weak self] (event: BrowseEvent) in
                self?.browsed(event, type, id, report)
            } _: { reference, context in
                DNSServiceBrowse(&reference, 0, 0, "\(type)\(suffix)", Self.domain, Self.onBrowse, context)
            }
        }
        return DiscoveryTask { [self] in queue.async { [self] in browses[id] = nil } }
    }

    private static let onBrowse: DNSServiceBrowseReply = { _, flags, interface, error, name, _, _, context in
        // mDNSResponder has ended, or the user denies the app the local network: nothing is found then.
        guard error == kDNSServiceErr_NoError else { return }
        let isThere = flags & DNSServiceFlags(kDNSServiceFlagsAdd) != 0
        Receiver<BrowseEvent>.from(context)?.receive((interface, isThere, text(name)))
    }

    private func browsed(
        _ event: BrowseEvent,
        _ type: ServiceType,
        _ id: Int,
        _ report: @escaping @Sendable (BrowseReport) -> Void
    ) {
        // The name may not be UTF-8, and the browse may have ended.
        guard var browse = browses[id], !event.name.isEmpty else { return }
        let service = ServiceName(instance: event.name, type: type)
        // mDNSResponder does not say which family.
        let link = Link(interface: event.interface, isIPv6: false)
        if event.isThere {
            browse.seen[service, default: []].insert(link)
            if browse.watches[service] == nil, browse.watches.count < PeerTable.maximumPeers {
                browse.watches[service] = watch(service, report)
            }
        } else {
            browse.seen[service]?.remove(link)
            if browse.seen[service]?.isEmpty == true {
                browse.seen[service] = nil
                browse.watches[service] = nil
            }
        }
        browses[id] = browse
        report(event.isThere ? .appeared(service, link) : .disappeared(service, link))
    }

    private func watch(
        _ service: ServiceName,
        _ report: @escaping @Sendable (BrowseReport) -> Void
    ) -> Operation? {
        var name = [CChar](repeating: 0, count: Int(kDNSServiceMaxDomainName))
        let type = "\(service.type)"
        guard DNSServiceConstructFullName(&name, service.instance, type, Self.domain) == 0 else { return nil }
        return operation { (event: RecordEvent) in
            if event.isThere { report(.text(service, event.bytes)) }
        } _: { reference, context in
            DNSServiceQueryRecord(
                &reference,
                DNSServiceFlags(kDNSServiceFlagsLongLivedQuery),
                0,
                name,
                DNSType.txt,
                1,
                Self.onRecord,
                context
            )
        }
    }

    private static let onRecord: DNSServiceQueryRecordReply = {
        _,
        flags,
        _,
        error,
        _,
        _,
        _,
        size,
        bytes,
        _,
        context in
        // mDNSResponder may end: the text that was read last stays.
        guard error == kDNSServiceErr_NoError else { return }
        let content = UnsafeRawBufferPointer(start: bytes, count: Int(size))
        let isThere = flags & DNSServiceFlags(kDNSServiceFlagsAdd) != 0
        Receiver<RecordEvent>.from(context)?.receive((isThere, Array(content)))
    }

    // MARK: Resolving

    package func resolve(
        _ service: ServiceName,
        report: @escaping @Sendable ([MulticastNode.Location]) -> Void
    ) -> DiscoveryTask {
        let id = newNumber
        queue.async { [self] in
            resolutions[id] = Resolution()
            resolutions[id]?.operation = operation { [weak self] (event: HostEvent) in
                self?.located(event, id, report)
            } _: { reference, context in
                DNSServiceResolve(
                    &reference,
                    0,
                    0,
                    service.instance,
                    "\(service.type)",
                    Self.domain,
                    Self.onResolve,
                    context
                )
            }
        }
        return DiscoveryTask { [self] in queue.async { [self] in resolutions[id] = nil } }
    }

    private static let onResolve: DNSServiceResolveReply = {
        _,
        _,
        interface,
        error,
        _,
        host,
        port,
        size,
        bytes,
        context in
        // mDNSResponder may end: the resolution then finds nothing, and times out.
        guard error == kDNSServiceErr_NoError else { return }
        let content = Array(UnsafeBufferPointer(start: bytes, count: Int(size)))
        let event = (interface, text(host), UInt16(bigEndian: port), content)
        Receiver<HostEvent>.from(context)?.receive(event)
    }

    private func located(
        _ event: HostEvent,
        _ id: Int,
        _ report: @escaping @Sendable ([MulticastNode.Location]) -> Void
    ) {
        let link = Link(interface: event.interface, isIPv6: false)
        resolutions[id]?.found[event.interface] = MulticastNode.Location(
            link: link,
            host: event.host,
            port: event.port,
            addresses: [],
            text: event.text
        )
        resolutions[id]?.addresses[event.interface] = operation { [weak self] (address: AddressEvent) in
            // The resolution may have ended.
            guard let self, let found = resolutions[id]?.found[event.interface] else { return }
            let others = found.addresses.filter { $0 != address.bytes }
            resolutions[id]?.found[event.interface] = MulticastNode.Location(
                link: link,
                host: found.host,
                port: found.port,
                addresses: Array(
                    (others + (address.isThere ? [address.bytes] : [])).suffix(Self.maximumAddresses)
                ),
                text: found.text
            )
            let locations = resolutions[id]?.found.values.filter { !$0.addresses.isEmpty } ?? []
            if !locations.isEmpty { report(Array(locations)) }
        } _: { reference, context in
            DNSServiceGetAddrInfo(&reference, 0, event.interface, 0, event.host, Self.onAddress, context)
        }
    }

    private static let onAddress: DNSServiceGetAddrInfoReply = { _, flags, _, error, _, address, _, context in
        // A host may have no address of a family.
        guard error == kDNSServiceErr_NoError, let address else { return }
        let raw = UnsafeRawPointer(address)
        let bytes: [UInt8]
        switch Int32(address.pointee.sa_family) {
        case AF_INET:
            bytes = withUnsafeBytes(of: raw.loadUnaligned(as: sockaddr_in.self).sin_addr) { Array($0) }
        case AF_INET6:
            bytes = withUnsafeBytes(of: raw.loadUnaligned(as: sockaddr_in6.self).sin6_addr) { Array($0) }
        default: return
        }
        let isThere = flags & DNSServiceFlags(kDNSServiceFlagsAdd) != 0
        Receiver<AddressEvent>.from(context)?.receive((isThere, bytes))
    }

    /// mDNSResponder asks again by itself when a record is about to expire.
    package func reconfirm(_ service: ServiceName) {}

    // MARK: Publishing

    package func publish(
        _ service: MulticastNode.Service,
        report: @escaping @Sendable (PublishReport) -> Void
    ) -> Publication {
        let id = newNumber
        queue.async { [self] in
            let subtypes = service.subtypes.map { ",\($0.hasPrefix("_") ? "" : "_")\($0)" }.joined()
            registrations[id] = operation { (event: RegisterEvent) in
                if event.error == kDNSServiceErr_NoError {
                    report(.published(instance: event.name, host: Self.hostName))
                } else {
                    report(.failed(Self.failure(event.error)))
                }
            } _: { reference, context in
                DNSServiceRegister(
                    &reference,
                    0,
                    service.interface ?? 0,
                    service.instance,
                    "\(service.type)\(subtypes)",
                    Self.domain,
                    nil,
                    service.port.bigEndian,
                    UInt16(service.text.count),
                    service.text,
                    Self.onRegister,
                    context
                )
            }
            if registrations[id] == nil { report(.failed(Self.failure(Int32(kDNSServiceErr_Unknown)))) }
        }
        return Publication { [self] text in
            queue.async { [self] in
                // The service could not be registered, or was withdrawn.
                guard let reference = registrations[id]?.reference else { return }
                _ = DNSServiceUpdateRecord(reference, nil, 0, UInt16(text.count), text, 0)
            }
        } onWithdraw: { [self] done in
            queue.async { [self] in
                registrations[id] = nil
                done()
            }
        }
    }

    private static let onRegister: DNSServiceRegisterReply = { _, _, error, name, _, _, context in
        Receiver<RegisterEvent>.from(context)?.receive((error, text(name)))
    }

    private static var hostName: String {
        var buffer = [CChar](repeating: 0, count: 256)
        gethostname(&buffer, buffer.count - 1)
        let name = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return name.hasSuffix(".local") ? name : "\(name.prefix { $0 != "." }).local"
    }

    private static func failure(_ error: DNSServiceErrorType) -> LoveseatError {
        let isForbidden = error == kDNSServiceErr_NoAuth || error == kDNSServiceErr_PolicyDenied
        return LoveseatError(
            .unsupported,
            isForbidden
                ? "the system does not allow to advertise: set NSLocalNetworkUsageDescription and NSBonjourServices, and ask the user to allow it in Settings"
                : "the system does not advertise the listener: dns_sd error \(error)"
        )
    }
}
#endif
