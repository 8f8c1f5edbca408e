import Foundation

/// A code of either kind.
package enum ScannedCode: Hashable, Sendable {
    case current(DropCode)
    case legacy(LegacyCode)

    /// - Throws: `data` if the text is not a code.
    package init(text: String) throws(DropError) {
        let isLegacy = LegacyCode.isPlausible(text.trimmingCharacters(in: .whitespacesAndNewlines))
        self = isLegacy ? .legacy(try LegacyCode(text: text)) : .current(try DropCode(text: text))
    }

    /// The receiver's name, or its host in a code that has no name.
    package var receiverName: String? {
        switch self {
        case .current(let code): code.name
        case .legacy(let code): code.url.host(percentEncoded: false)
        }
    }
}
