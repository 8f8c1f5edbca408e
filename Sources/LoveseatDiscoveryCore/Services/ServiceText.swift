public import LoveseatModel

/// The TXT record of a service: keys with optional binary values (RFC 6763, section 6).
public struct ServiceText: Hashable, Sendable {
    /// The longest record that is sent or read, in bytes.
    public static let maximumSize = 1_300

    /// One key of a record. The value is nil for a key without `=`.
    public struct Entry: Hashable, Sendable {
        /// The key as it was written. Keys are compared without regard to case.
        public let key: String
        /// The bytes after `=`.
        public let value: [UInt8]?

        /// Creates an entry.
        public init(key: String, value: [UInt8]?) {
            self.key = key
            self.value = value
        }
    }

    /// The entries in their order, each key once.
    public let entries: [Entry]

    /// Creates a record. Of entries with the same key, the first counts.
    ///
    /// - Throws: `LoveseatError`: `invalidParameter` for a key that is empty, is not printable ASCII or contains `=`, an entry of more than
    ///   255 bytes with its key, or a record of more than ``maximumSize`` bytes.
    public init(_ entries: [Entry] = []) throws(LoveseatError) {
        for entry in entries {
            guard Self.isKey(Array(entry.key.utf8)) else {
                throw LoveseatError(
                    .invalidParameter,
                    "\"\(entry.key)\" is not a valid key of a TXT record: use printable ASCII without ="
                )
            }
            let count = entry.key.utf8.count + (entry.value.map { $0.count + 1 } ?? 0)
            guard count <= 255 else {
                throw LoveseatError(
                    .invalidParameter,
                    "entry \"\(entry.key)\" of a TXT record has \(count) bytes: use at most 255"
                )
            }
        }
        self.init(unique: entries)
        guard bytes.count <= Self.maximumSize else {
            throw LoveseatError(
                .invalidParameter,
                "a TXT record has \(bytes.count) bytes: use at most \(Self.maximumSize)"
            )
        }
    }

    /// Reads what a peer sent. Entries that are not valid, and those beyond ``maximumSize``, are left out.
    package init(bytes: [UInt8]) {
        var entries: [Entry] = []
        var rest = bytes.prefix(Self.maximumSize)
        while let length = rest.popFirst(), rest.count >= Int(length) {
            let text = rest.prefix(Int(length))
            rest = rest.dropFirst(Int(length))
            let key = text.prefix { $0 != UInt8(ascii: "=") }
            guard Self.isKey(Array(key)) else { continue }
            let value = key.count < text.count ? Array(text.dropFirst(key.count + 1)) : nil
            entries.append(Entry(key: String(decoding: key, as: UTF8.self), value: value))
        }
        self.init(unique: entries)
    }

    private init(unique entries: [Entry]) {
        var seen: Set<String> = []
        self.entries = entries.filter { seen.insert($0.key.lowercased()).inserted }
    }

    private static func isKey(_ bytes: [UInt8]) -> Bool {
        !bytes.isEmpty && bytes.allSatisfy { (0x20...0x7E).contains($0) && $0 != UInt8(ascii: "=") }
    }

    /// The record as it is sent: an empty one is a zero byte.
    package var bytes: [UInt8] {
        let bytes = entries.flatMap { entry in
            let text = Array(entry.key.utf8) + (entry.value.map { [UInt8(ascii: "=")] + $0 } ?? [])
            return [UInt8(text.count)] + text
        }
        return bytes.isEmpty ? [0] : bytes
    }

    /// The entry of a key.
    public func entry(_ key: String) -> Entry? {
        entries.first { $0.key.lowercased() == key.lowercased() }
    }

    /// The value of a key as text; nil if there is none, or if it is not UTF-8.
    public subscript(key: String) -> String? {
        entry(key)?.value.flatMap { String(validating: $0, as: UTF8.self) }
    }
}
