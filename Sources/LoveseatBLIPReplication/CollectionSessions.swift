import LoveseatModel
import LoveseatReplication

/// The collections of a session, with the ones that the current event touched, and the totals of all.
///
/// A session may have a thousand collections, so nothing is done for each of them after an event of one.
struct CollectionSessions: RandomAccessCollection, MutableCollection {
    private var items: [CollectionSession] = []
    private var accounts: [Account] = []
    /// The collections that were changed since the last ``beginEvent()``, each once, in the order of their first change.
    private(set) var touched: [Int] = []
    /// The collections whose progress was noted while others were busy.
    private(set) var unnoted: [Int] = []
    /// The sum of the counts of all collections.
    private(set) var total = Counts()
    /// Why the peer takes nothing, or gives nothing, once it has refused to and the session goes on in the other direction.
    var refusal: LoveseatError?
    /// The place of each collection.
    private(set) var positions: [CollectionName: Int] = [:]

    /// The counts of a collection.
    struct Counts: Hashable {
        var busy = 0
        var unsaved = 0
        /// 1 while the changes of both sides are not compared yet.
        var uncompared = 0
        var bufferedBytes = 0
        var expectations = 0
        var progress = ReplicationProgress()

        fileprivate mutating func replace(_ old: Counts, by new: Counts) {
            busy += new.busy - old.busy
            unsaved += new.unsaved - old.unsaved
            uncompared += new.uncompared - old.uncompared
            bufferedBytes += new.bufferedBytes - old.bufferedBytes
            expectations += new.expectations - old.expectations
            progress.replace(old.progress, by: new.progress)
        }
    }

    private struct Account {
        var counts = Counts()
        var isTouched = false
        var isUnnoted = false
    }

    /// ``total``, added up anew.
    var sum: Counts { accounts.reduce(into: Counts()) { $0.replace(Counts(), by: $1.counts) } }

    init() {}

    init(_ items: [CollectionSession]) {
        self.items = items
        accounts = Array(repeating: Account(), count: items.count)
        positions = Dictionary(
            items.enumerated().map { ($1.name, $0) },
            uniquingKeysWith: { first, _ in first }
        )
        for index in items.indices { touch(index) }
    }

    var startIndex: Int { items.startIndex }
    var endIndex: Int { items.endIndex }

    /// Changing a collection counts as touching it.
    subscript(index: Int) -> CollectionSession {
        @inline(__always) _read { yield items[index] }
        @inline(__always) _modify {
            touch(index)
            yield &items[index]
        }
    }

    /// Changes a collection, for what is done for each document: where the compiler calls the subscript's coroutine, that allocates a frame
    /// with room for a whole collection.
    @inline(__always)
    mutating func update(
        _ index: Int,
        _ effects: inout SessionEffects,
        _ change: (inout CollectionSession, inout SessionEffects) -> Void
    ) {
        touch(index)
        change(&items[index], &effects)
    }

    private mutating func touch(_ index: Int) {
        if accounts[index].isTouched { return }
        accounts[index].isTouched = true
        touched.append(index)
    }

    mutating func endEvent() {
        for index in touched { accounts[index].isTouched = false }
        touched.removeAll(keepingCapacity: true)
    }

    /// Returns why one of the touched collections cannot go on.
    mutating func firstFailure() -> LoveseatError? {
        for index in touched {
            if let failure = items[index].failure() { return failure }
        }
        return nil
    }

    /// Whether a collection was busy at the end of the last event, or has changed since.
    func mayBeBusy(_ index: Int) -> Bool {
        accounts[index].isTouched || accounts[index].counts.busy > 0
    }

    /// Counts a collection anew. `pulls`: whether the session pulls from its peer.
    mutating func count(_ index: Int, pulls: Bool) {
        var counts = Counts()
        counts.busy = items[index].isBusy(pulls: pulls) ? 1 : 0
        counts.uncompared = items[index].isCompared(pulls: pulls) ? 0 : 1
        counts.unsaved = accounts[index].counts.unsaved
        counts.bufferedBytes = items[index].pull.incoming.bytes
        counts.expectations = items[index].pull.expectations.count
        items[index].add(to: &counts.progress)
        if counts == accounts[index].counts { return }
        total.replace(accounts[index].counts, by: counts)
        accounts[index].counts = counts
    }

    /// Counts whether the checkpoint of a collection is being saved.
    mutating func countUnsaved(_ index: Int) {
        let unsaved = items[index].isSavingCheckpoint() ? 1 : 0
        total.unsaved += unsaved - accounts[index].counts.unsaved
        accounts[index].counts.unsaved = unsaved
    }

    /// Remembers that the progress of the touched collections has to be noted once more when nothing is busy.
    mutating func deferNotes() {
        for index in touched where !accounts[index].isUnnoted {
            accounts[index].isUnnoted = true
            unnoted.append(index)
        }
    }

    /// Touches the collections whose progress has to be noted now.
    mutating func resumeNotes() {
        for index in unnoted {
            accounts[index].isUnnoted = false
            touch(index)
        }
        unnoted.removeAll(keepingCapacity: true)
    }
}
