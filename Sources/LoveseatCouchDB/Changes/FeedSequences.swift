import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatStorage

/// Sequences as clients see them.
///
/// The store's go on when a collection is deleted and made anew, since peers of Couchbase's protocol remember them. Those of a new
/// database of CouchDB's wire begin at 0: there `5-12` is the fifth change of the collection with the number 12. A sequence of an earlier
/// collection of the name then means the beginning, as it does with CouchDB, so that its readers miss nothing.
extension Databases.Entry {
    /// The number of changes since the collection was made, up to a sequence of the store.
    func changeNumber(_ stored: UInt64) -> UInt64 {
        stored > handle.firstSequence ? stored - handle.firstSequence : 0
    }

    /// A sequence of the store, as text without quotes.
    func sequenceName(_ stored: UInt64) -> String {
        handle.firstSequence == 0 ? "\(stored)" : "\(changeNumber(stored))-\(handle.number)"
    }

    /// A sequence of the store, as the text of JSON.
    func sequenceText(_ stored: UInt64) -> String {
        handle.firstSequence == 0 ? "\(stored)" : "\"\(sequenceName(stored))\""
    }

    /// A sequence of the store, as JSON.
    func sequence(_ stored: UInt64) -> JSONValue {
        handle.firstSequence == 0 ? JSONValue(stored) : .string(sequenceName(stored))
    }

    /// The store's sequence for one that a client names.
    ///
    /// - Throws: `bad_request` for text that is not a sequence.
    func position(of text: String) throws(CouchDBError) -> UInt64 {
        if text == "now" { return store.lastSequence(handle) }
        var text = text[...]
        if text.hasPrefix("\""), text.hasSuffix("\""), text.count > 1 { text = text.dropFirst().dropLast() }
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        let numbers = parts.compactMap { part in
            part.utf8.allSatisfy { (0x30...0x39).contains($0) } ? UInt64(part) : nil
        }
        guard numbers.count == parts.count, let number = numbers.first, numbers.count <= 2 else {
            throw .badRequest("Malformed sequence supplied in 'since' parameter.")
        }
        if handle.firstSequence == 0 { return numbers.count == 1 ? number : 0 }
        guard numbers.last == UInt64(clamping: handle.number), numbers.count == 2 else {
            return handle.firstSequence
        }
        let (position, overflows) = handle.firstSequence.addingReportingOverflow(number)
        return overflows ? .max : position
    }
}
