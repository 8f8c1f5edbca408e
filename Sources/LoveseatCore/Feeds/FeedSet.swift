/// The feeds that observe one source. The source guards the set with its lock.
package struct FeedSet<Element: Sendable>: Sendable {
    private var feeds: [ObjectIdentifier: FeedBuffer<Element>] = [:]

    package init() {}

    package var isEmpty: Bool { feeds.isEmpty }
    package var all: [FeedBuffer<Element>] { Array(feeds.values) }

    package mutating func insert(_ feed: FeedBuffer<Element>) { feeds[ObjectIdentifier(feed)] = feed }

    package mutating func remove(_ feed: FeedBuffer<Element>) { feeds[ObjectIdentifier(feed)] = nil }

    /// Removes all feeds, and returns them.
    package mutating func removeAll() -> [FeedBuffer<Element>] {
        defer { feeds = [:] }
        return all
    }
}
