extension VersionVector {
    /// Returns the binary form: a zero byte, and for each version the difference of its time to the one before, and its source
    /// (version-vectors.md §5.2).
    ///
    /// - Parameter own: A source that is written as "me", in one byte instead of 17, as Couchbase Lite does in its files; nil for none. A form with it
    ///   has no meaning outside of its database.
    /// - Returns: The bytes.
    /// - Precondition: No time is beyond ``HybridClock/validTimes``. The form has 63 bits for a time.
    package func encoded(own: SourceID? = nil) -> [UInt8] {
        var bytes: [UInt8] = [0]
        bytes.reserveCapacity(1 + 21 * versions.count)
        var last: UInt64 = 0
        for (index, version) in versions.enumerated() {
            Self.append(index == 0 ? version.time : last &- version.time, to: &bytes)
            last = version.time
            let isOwn = version.source == own
            bytes.append(
                (isOwn ? 0 : UInt8(SourceID.byteCount)) | (index < currentCount ? Self.isCurrent : 0)
            )
            if !isOwn { bytes += version.source.bytes }
        }
        return bytes
    }

    /// Creates a vector from its binary form.
    ///
    /// - Throws: ``VersionError`` for anything that is not the form of a valid vector, for "me" if `own` is nil, and for more than ``maximumCount``
    ///   versions.
    package init(encoded bytes: some Collection<UInt8>, own: SourceID? = nil) throws(VersionError) {
        var input = Array(bytes)[...]
        guard input.popFirst() == 0 else { throw VersionError(.invalidBytes) }
        var versions: [Version] = []
        var currentCount = 0
        while !input.isEmpty {
            guard versions.count < Self.maximumCount else { throw VersionError(.tooManyVersions) }
            guard let number = Self.number(&input), let head = input.popFirst() else {
                throw VersionError(.invalidBytes)
            }
            if head & Self.isCurrent != 0 {
                guard currentCount == versions.count else { throw VersionError(.invalidBytes) }
                currentCount += 1
            }
            let time = (versions.last.map { $0.time &- number } ?? number) & HybridClock.validTimes.upperBound
            versions.append(try Version(time: time, source: Self.source(head, &input, own: own)))
        }
        // The form of a single version has no mark.
        if currentCount == 0 { currentCount = min(1, versions.count) }
        try self.init(versions, currentCount: currentCount)
    }

    /// The mark of the current version and of the merge versions, in the byte before the source.
    private static let isCurrent: UInt8 = 0x80

    private static func source(
        _ head: UInt8,
        _ input: inout ArraySlice<UInt8>,
        own: SourceID?
    ) throws(VersionError) -> SourceID {
        switch head & ~isCurrent {
        case 0:
            guard let own else { throw VersionError(.ownSource) }
            return own
        case UInt8(SourceID.byteCount):
            let bytes = input.prefix(SourceID.byteCount)
            input = input.dropFirst(SourceID.byteCount)
            return try SourceID(bytes: bytes)
        default:
            throw VersionError(.invalidBytes)
        }
    }

    /// Appends a time or a difference, which may be negative, as a varint. Without its counter it takes two bytes less.
    private static func append(_ number: UInt64, to bytes: inout [UInt8]) {
        let signed = Int64(bitPattern: number)
        let packed = signed & 0xFFFF == 0 ? signed >> 15 : signed << 1 | 1
        var rest = UInt64(bitPattern: packed)
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    private static func number(_ input: inout ArraySlice<UInt8>) -> UInt64? {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 64, by: 7) {
            guard let byte = input.popFirst() else { return nil }
            let bits = UInt64(byte & 0x7F)
            guard shift < 63 || bits <= 1 else { return nil }
            value |= bits << shift
            if byte & 0x80 == 0 {
                let packed = Int64(bitPattern: value)
                return UInt64(bitPattern: packed & 1 == 0 ? packed << 15 : packed >> 1)
            }
        }
        return nil
    }
}
