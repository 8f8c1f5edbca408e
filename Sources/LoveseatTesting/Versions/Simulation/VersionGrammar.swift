import LoveseatBLIP
import LoveseatModel

/// Checks the names of states that a Loveseat sends, by version-vectors.md §4, §5.1 and §11.3 and not with the reader that ships.
package enum VersionGrammar {
    /// Returns a sentence for each name in a message that is not valid.
    static func problems(in event: BLIPConnection.Event) -> [String] {
        names(in: event).compactMap { name in problem(with: name).map { "INVALID \(name): \($0)" } }
    }

    // MARK: Messages

    private static func names(in event: BLIPConnection.Event) -> [String] {
        switch event {
        case .request(_, let message):
            let rows = LiteSession.parse(message.body)?.array ?? []
            switch message.profile {
            case "rev": return [wholeName(message.properties), message.properties["deltaSrc"] ?? ""]
            case "changes": return rows.compactMap { $0[2]?.string }
            case "proposeChanges": return rows.flatMap { [$0[1]?.string, $0[2]?.string].compactMap { $0 } }
            default: return []
            }
        case .response(_, let message):
            // The answer to a list.
            let items = LiteSession.parse(message.body)?.array ?? []
            return items.flatMap { item in
                let current = item["status"] == nil ? nil : item["rev"]?.string
                return (item.array ?? []).compactMap(\.string) + [current].compactMap { $0 }
            }
        case .failure, .piece, .sent, .wantsBody: return []
        }
    }

    /// The whole vector, with the revisions behind it, or the ID with those before it.
    private static func wholeName(_ properties: MessageProperties) -> String {
        let name = properties["rev"] ?? ""
        // Without any history, there is nothing but the name.
        guard let history = properties["history"] else { return name }
        return "\(name)\(history.contains(";") || !name.contains("@") ? ", " : "; ")\(history)"
    }

    // MARK: Texts

    private struct Entry {
        let time: UInt64
        let source: Substring

        init?(_ text: Substring) {
            let parts = text.split(separator: "@", omittingEmptySubsequences: false)
            guard parts.count == 2, (1...16).contains(parts[0].utf8.count), parts[0].first != "0",
                parts[0].utf8.allSatisfy(VersionGrammar.isDigit), let time = UInt64(parts[0], radix: 16),
                HybridClock.validTimes.contains(time)
            else { return nil }
            guard parts[1].utf8.count == 22, parts[1].allSatisfy(Self.alphabet.contains),
                parts[1].last.map("AQgw".contains) == true, parts[1].contains(where: { $0 != "A" })
            else { return nil }
            (self.time, source) = (time, parts[1])
        }

        private static let alphabet = Set(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        )
    }

    /// Whether a character is a hexadecimal digit, and not a capital letter.
    private static func isDigit(_ character: UInt8) -> Bool {
        (0x30...0x39).contains(character) || (0x61...0x66).contains(character)
    }

    private static func isRevision(_ text: Substring) -> Bool {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        return parts.count == 2 && UInt32(parts[0]) ?? 0 > 0 && parts[1].utf8.allSatisfy(isDigit)
    }

    private static func items(_ text: Substring) -> [Substring] {
        if text.allSatisfy({ $0 == " " }) { return [] }
        return text.split(separator: ",", omittingEmptySubsequences: false).map { $0.drop { $0 == " " } }
    }

    /// Returns what is wrong with the name of a state; nil if it is valid. An empty name stands for no document.
    package static func problem(with name: String) -> String? {
        let parts = name.split(separator: ";", omittingEmptySubsequences: false).map(items)
        guard parts.count <= 2 else { return "there are two semicolons" }
        let (first, rest) = (parts.first ?? [], parts.count == 2 ? parts[1] : [])
        if first.isEmpty { return rest.isEmpty ? nil : "there is no current version" }
        if parts.count == 1, first.allSatisfy(isRevision) { return nil }
        let revisions = rest.reversed().prefix(while: isRevision).count
        let texts = first + rest.dropLast(revisions)
        let entries = texts.compactMap { Entry($0) }
        if entries.count < texts.count { return "not each entry is a version" }
        if parts.count == 2, rest.isEmpty, first.count < 2 {
            return "there is nothing behind the semicolon"
        }
        if parts.count == 1, first.count > 1 { return "a semicolon is missing behind the merge versions" }
        return repetition(in: entries, currents: first.count)
    }

    /// Each source occurs once. Only the current version's may be that of a merge version too, with an older time.
    private static func repetition(in entries: [Entry], currents: Int) -> String? {
        var sources: Set<Substring> = []
        var hasTwin = false
        for (place, entry) in entries.enumerated() where !sources.insert(entry.source).inserted {
            let isTwin =
                place < currents && entry.source == entries[0].source && entry.time < entries[0].time
            guard isTwin, !hasTwin else { return "the source \(entry.source) occurs twice" }
            hasTwin = true
        }
        return nil
    }
}
