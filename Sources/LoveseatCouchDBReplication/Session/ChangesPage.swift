package import LoveseatModel

/// A part of a remote's feed of changes.
package struct ChangesPage: Sendable {
    package var changes: [RemoteChange]
    package var unreadable: [UnreadableChange]
    package var end: ChangesParser.End
    /// Whether nothing is missing at its end: the answer was not cut.
    package var isWhole: Bool

    package init(
        changes: [RemoteChange] = [],
        unreadable: [UnreadableChange] = [],
        end: ChangesParser.End,
        isWhole: Bool = true
    ) {
        (self.changes, self.unreadable, self.end, self.isWhole) = (changes, unreadable, end, isWhole)
    }

    package var isEmpty: Bool { changes.isEmpty && unreadable.isEmpty }
    /// Where to go on; nil if the remote does not say so.
    package var next: RemoteSequence? { end.lastSequence ?? changes.last?.sequence }
}

/// The changes of some documents.
package struct ChangesListing: Sendable {
    package var changes: [RemoteChange] = []
    /// Whether no row was unreadable, which may be that of any document.
    package var isReadable = true

    package init() {}
}
