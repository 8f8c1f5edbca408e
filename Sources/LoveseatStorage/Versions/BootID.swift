private import LoveseatPlatform

/// The run of the operating system, from one start to the next.
enum BootID {
    /// A random name of the run; nil if the system does not say.
    static func current() -> String? {
        #if canImport(Darwin)
        var length = 0
        guard sysctlbyname("kern.bootsessionuuid", nil, &length, nil, 0) == 0, length > 1 else { return nil }
        var bytes = [UInt8](repeating: 0, count: length)
        guard sysctlbyname("kern.bootsessionuuid", &bytes, &length, nil, 0) == 0 else { return nil }
        return name(bytes)
        #else
        let descriptor = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
        // A container or a sandbox may not have it.
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = read(descriptor, &bytes, bytes.count)
        return count > 0 ? name(bytes.prefix(count)) : nil
        #endif
    }

    /// The name without what follows it; nil for an empty one.
    private static func name(_ bytes: some Sequence<UInt8>) -> String? {
        let text = bytes.prefix { $0 > UInt8(ascii: " ") && $0 < 0x7F }
        let name = String(decoding: Array(text), as: UTF8.self)
        return name.isEmpty ? nil : name
    }
}
