/// Reads the text of versions, of vectors, and of the revision IDs behind them (version-vectors.md §4, §5.1).
struct VersionReader {
    private let bytes: [UInt8]
    private var position = 0

    /// - Throws: ``VersionError`` for texts that are longer than ``VersionVector/maximumBytes``, which are not copied.
    init(_ text: some StringProtocol) throws(VersionError) {
        try self.init(text.utf8)
    }

    init(_ bytes: some Collection<UInt8>) throws(VersionError) {
        let start = bytes.prefix(VersionVector.maximumBytes + 1)
        guard start.count <= VersionVector.maximumBytes else { throw VersionError(.tooLong) }
        self.bytes = Array(start)
    }

    var isAtEnd: Bool { position == bytes.count }

    private var next: UInt8? { isAtEnd ? nil : bytes[position] }

    private func error(_ reason: VersionError.Reason) -> VersionError { VersionError(reason, at: position) }

    /// - Throws: ``VersionError`` if something follows.
    func end() throws(VersionError) {
        guard isAtEnd else { throw error(.unexpectedCharacter) }
    }

    private mutating func skipBlanks() {
        while next == UInt8(ascii: " ") { position += 1 }
    }

    mutating func version() throws(VersionError) -> Version {
        let start = position
        var time: UInt64 = 0
        while let digit = next.flatMap(Self.hexadecimalValue) {
            guard position - start < 16 else { throw error(.timeTooLong) }
            time = time << 4 | UInt64(digit)
            position += 1
        }
        guard position > start else { throw error(isAtSeparator ? .missingVersion : .missingTime) }
        guard time != 0 else { throw VersionError(.timeIsZero, at: start) }
        guard next == UInt8(ascii: "@") else { throw error(.missingSource) }
        position += 1
        return Version(unchecked: time, try source())
    }

    private var isAtSeparator: Bool { next == nil || next == UInt8(ascii: ",") || next == UInt8(ascii: ";") }

    static func hexadecimalValue(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x61...0x66: byte - 0x61 + 10
        case 0x41...0x46: byte - 0x41 + 10
        default: nil
        }
    }

    mutating func source() throws(VersionError) -> SourceID {
        let start = position
        if next == UInt8(ascii: "*") { throw error(.ownSource) }
        var (high, low) = (UInt64(0), UInt64(0))
        var count = 0
        while let digit = next.flatMap(Base64.digit) {
            // 21 characters are 126 bits; of the last one, only the two upper bits count.
            let isLast = count == SourceID.characterCount - 1
            guard count < SourceID.characterCount, !isLast || digit & 15 == 0 else {
                throw error(.invalidSource)
            }
            let bits: UInt64 = isLast ? 2 : 6
            high = high << bits | low >> (64 - bits)
            low = low << bits | UInt64(isLast ? digit >> 4 : digit)
            count += 1
            position += 1
        }
        guard count == SourceID.characterCount else { throw error(.invalidSource) }
        guard high | low != 0 else { throw VersionError(.reservedSource, at: start) }
        return SourceID(high: high, low: low)
    }

    /// Reads a vector up to the end of the text, and the revision IDs behind it.
    ///
    /// The IDs come after a semicolon and after all versions, the newest first (version-vectors.md §11.3). An empty item directly behind the
    /// semicolon is skipped there, because Sync Gateway writes one.
    mutating func vector(
        withRevisions readsRevisions: Bool = false
    ) throws(VersionError) -> (vector: VersionVector, revisions: [RevisionID]) {
        var versions: [Version] = []
        var revisions: [RevisionID] = []
        var currentCount: Int?
        while !isAtEnd {
            if readsRevisions, currentCount != nil, isAtRevision {
                try append(to: &revisions)
            } else {
                guard versions.count < VersionVector.maximumCount else { throw error(.tooManyVersions) }
                let version = try version()
                guard revisions.isEmpty else { throw error(.versionAfterRevision) }
                versions.append(version)
            }
            guard let separator = next else { break }
            switch separator {
            case UInt8(ascii: ","):
                position += 1
                skipBlanks()
                // Something has to follow.
                if isAtEnd { throw error(.missingVersion) }
            case UInt8(ascii: ";"):
                guard currentCount == nil else { throw error(.secondSemicolon) }
                currentCount = versions.count
                position += 1
                skipBlanks()
                if readsRevisions, next == UInt8(ascii: ",") {
                    position += 1
                    skipBlanks()
                    if isAtEnd { throw error(.missingVersion) }
                }
            default:
                throw error(.unexpectedCharacter)
            }
        }
        return (try VersionVector(versions, currentCount: currentCount ?? versions.count), revisions)
    }

    /// Reads revision IDs up to the end of the text, separated by commas.
    mutating func revisions() throws(VersionError) -> [RevisionID] {
        var revisions: [RevisionID] = []
        while !isAtEnd {
            try append(to: &revisions)
            guard next == UInt8(ascii: ",") else { break }
            position += 1
            skipBlanks()
            if isAtEnd { throw error(.missingVersion) }
        }
        try end()
        return revisions
    }

    /// Reads the next revision ID of a list. Of a longer list than any tree here, which would only cost time, the newest are kept.
    private mutating func append(to revisions: inout [RevisionID]) throws(VersionError) {
        let id = try revision()
        if revisions.count < VersionVector.maximumCount { revisions.append(id) }
    }

    /// Whether the next item is a revision ID: a hyphen stands in it before any `@`.
    var isAtRevision: Bool {
        for byte in bytes[position...] {
            switch byte {
            case UInt8(ascii: "-"): return true
            case UInt8(ascii: "@"), UInt8(ascii: ","), UInt8(ascii: ";"): return false
            default: continue
            }
        }
        return false
    }

    /// Reads a version, or a revision ID.
    mutating func name() throws(VersionError) -> RevisionName {
        isAtRevision ? .revision(try revision()) : .version(try version())
    }

    mutating func revision() throws(VersionError) -> RevisionID {
        let item = bytes[position...].prefix { $0 != UInt8(ascii: ",") && $0 != UInt8(ascii: ";") }
        let id = RevisionID(String(decoding: item, as: UTF8.self))
        guard let id, id.isHexadecimal else { throw error(.invalidRevision) }
        position += item.count
        return id
    }
}
