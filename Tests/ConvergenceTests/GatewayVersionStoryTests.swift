import LoveseatModel
import LoveseatTesting
import Testing

/// Stories of a gateway that becomes one of version 4, with clients that speak of versions with it and clients that do not
/// (version-vectors.md §15, docs/decisions/0015).
@Suite struct GatewayVersionStoryTests {
    private func syncAll(_ story: GatewayStory, rounds: Int = 4) throws {
        for _ in 0..<rounds { for client in 0..<3 { try story.sync(client) } }
    }

    private func states(_ story: GatewayStory) -> Set<Int?> {
        [story.gateway, story.shown(0), story.shown(1), story.shown(2)]
    }

    /// The author of the first edit after the upgrade: a client with versions, one with trees, or somebody over REST.
    @Test(arguments: [0, 2, 3])
    func `a document from before the upgrade is edited by anybody, and everybody gets it`(_ author: Int)
        throws
    {
        let story = try GatewayStory(clients: 3, versions: [0, 1])
        try story.write(1)
        try syncAll(story)
        try story.write(2)
        try syncAll(story)
        try story.upgrade()
        try syncAll(story)
        #expect(story.vector.isEmpty, "nobody has written it")
        for content in [7, 8] {
            if author == 3 { try story.write(content) } else { try story.save(author, content) }
            try syncAll(story)
            #expect(states(story) == [content])
        }
        #expect(!story.vector.isEmpty)
        #expect(story.failures == [])
    }

    @Test func `an edit from before the upgrade that was not pushed reaches the gateway after it`() throws {
        let story = try GatewayStory(clients: 3, versions: [0, 1])
        try story.write(1)
        try syncAll(story)
        try story.save(0, 5)
        try story.upgrade()
        try syncAll(story)
        #expect(states(story) == [5])
        #expect(story.failures == [])
    }

    @Test func `edits beside each other over the upgrade leave one of them everywhere`() throws {
        for (first, second) in [(0, 1), (0, 2), (2, 1)] {
            let story = try GatewayStory(clients: 3, versions: [0, 1])
            try story.write(1)
            try syncAll(story)
            try story.save(first, 5)
            try story.upgrade()
            try story.save(second, 6)
            try syncAll(story)
            #expect(states(story).count == 1)
            #expect(states(story).isSubset(of: [5, 6]))
            #expect(story.failures == [])
        }
    }

    @Test func `a deletion and an edit beside it end with the deletion`() throws {
        let story = try GatewayStory(clients: 3, versions: [0, 1])
        try story.upgrade()
        try story.save(0, 1)
        try syncAll(story)
        try story.save(0, nil)
        try story.save(1, 6)
        try syncAll(story)
        #expect(states(story) == [nil])
        try story.save(1, 7)
        try syncAll(story)
        #expect(states(story) == [7])
        #expect(story.failures == [])
    }

    /// Random edits with three contents by clients and over REST. Nobody edits while others have not heard of it, so the last edit stands.
    @Test func `where everybody has seen the last edit, the next one stands, whoever speaks of versions`()
        throws
    {
        for seed in UInt64(1)...60 {
            var generator = SeededGenerator(seed: seed)
            let versions = Set((0..<3).filter { _ in Bool.random(using: &generator) })
            let story = try GatewayStory(clients: 3, versions: versions)
            let upgrade = Int.random(in: 0...10, using: &generator)
            var last: Int?
            for step in 0..<20 {
                if step == upgrade { try story.upgrade() }
                let author = Int.random(in: 0...3, using: &generator)
                let content = Int.random(in: 0...3, using: &generator)
                let next = content == 3 ? nil : content
                if next == nil, last == nil { continue }
                if author == 3 {
                    try story.write(next)
                } else {
                    try story.save(author, next)
                    try story.sync(author)
                }
                last = next
                for client in 0..<3 { try story.sync(client) }
                #expect(states(story) == [last], "seed \(seed), step \(step)")
            }
            #expect(story.failures == [])
        }
    }
}
