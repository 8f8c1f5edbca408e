import LoveseatTesting
import Testing

/// People who write the same again, at a gateway: a checkbox, a status, a counter that is set back (docs/decisions/0001).
@Suite struct GatewayStoryTests {
    /// Who writes last, and by which way.
    enum Author: CaseIterable { case client, rest }

    /// c writes 1, 2, 3 beside d's 9, and its content is put on top of the gateway's line. Then somebody writes what c had written before.
    private func begin(deletes: Bool, allowsConflicts: Bool) throws -> GatewayStory {
        let story = try GatewayStory(clients: 2, allowsConflicts: allowsConflicts)
        try story.save(0, 0)
        try story.sync(0)
        try story.sync(1)
        try story.save(1, 9)
        try story.sync(1)
        for number in 1...3 { try story.save(0, number) }
        if deletes { try story.save(0, nil) }
        try story.sync(0)
        try story.sync(1)
        return story
    }

    @Test(arguments: Author.allCases, [false, true])
    func `an edit that repeats an older content is not overwritten by a client that edited nothing`(
        _ author: Author,
        _ allowsConflicts: Bool
    ) throws {
        for content in 0...3 {
            try check(author, content, allowsConflicts)
        }
    }

    private func check(_ author: Author, _ content: Int, _ allowsConflicts: Bool) throws {
        for deletes in [false, true] {
            for furtherEdits in [0, 5] {
                let story = try begin(deletes: deletes, allowsConflicts: allowsConflicts)
                for number in 0..<furtherEdits { try story.write(100 + number) }
                if author == .client {
                    try story.sync(1)
                    try story.save(1, content)
                    try story.sync(1)
                } else {
                    try story.write(content)
                }
                #expect(story.gateway == content)
                // Nobody edits any more.
                for _ in 0..<3 {
                    try story.sync(0)
                    try story.sync(1)
                }
                let states = [story.gateway, story.shown(0), story.shown(1)]
                #expect(
                    states == [content, content, content],
                    "deletes: \(deletes), further edits: \(furtherEdits)"
                )
                #expect(story.failures == [])
            }
        }
    }

    /// Random edits with three contents by two clients and over REST. Nobody edits while others have not heard of it, so the last edit stands.
    @Test func `where everybody has seen the last edit, the next one stands`() throws {
        for seed in UInt64(1)...60 {
            var generator = SeededGenerator(seed: seed)
            let story = try GatewayStory(clients: 3)
            var last: Int?
            for _ in 0..<20 {
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
                #expect(
                    [story.gateway, story.shown(0), story.shown(1), story.shown(2)] == [
                        last, last, last, last,
                    ],
                    "seed \(seed)"
                )
            }
            #expect(story.failures == [])
        }
    }

    /// As above, with edits beside each other. In the end everybody has the same, and it is what somebody wrote that nobody superseded.
    @Test func `edits beside each other leave one of those that nobody had seen`() throws {
        for seed in UInt64(1)...60 {
            var generator = SeededGenerator(seed: seed)
            let story = try GatewayStory(clients: 3)
            for _ in 0..<6 {
                var written: Set<Int?> = []
                for client in 0..<3 {
                    let content = Int.random(in: 0...2, using: &generator)
                    for earlier in 0..<Int.random(in: 0...2, using: &generator) {
                        try story.save(client, earlier)
                    }
                    try story.save(client, content)
                    written.insert(content)
                }
                for _ in 0..<4 { for client in 0..<3 { try story.sync(client) } }
                let states: Set = [story.gateway, story.shown(0), story.shown(1), story.shown(2)]
                #expect(states.count == 1, "seed \(seed): \(states) of \(written)")
                #expect(states.isSubset(of: written), "seed \(seed): \(states) of \(written)")
            }
            #expect(story.failures == [])
        }
    }

    /// Branches beside the current one, deletions that make the other one current again (gateway.md 56), and edits on top of either, each
    /// seen by everybody before the next. Several rounds: a deletion may have to come around.
    @Test func `clients follow a gateway from branch to branch`() throws {
        for seed in UInt64(1)...60 {
            var generator = SeededGenerator(seed: seed)
            let story = try GatewayStory(clients: 3, allowsConflicts: true)
            try story.save(0, 0)
            var steps: [String] = []
            for _ in 0..<25 {
                for _ in 0..<8 { for client in 0..<3 { try story.sync(client) } }
                let last = story.gateway
                let shown = (0..<3).map(story.shown)
                guard shown == [last, last, last] else {
                    Issue.record(
                        "seed \(seed): \(steps) leave \(shown), and \(String(describing: last)) at the gateway"
                    )
                    for client in 0..<3 { print(seed, client, story.knowledge(of: client)) }
                    break
                }
                let content = Int.random(in: 0...2, using: &generator)
                let client = Int.random(in: 0..<3, using: &generator)
                switch Int.random(in: 0...5, using: &generator) {
                case 0, 1:
                    steps.append("branch \(content)")
                    try story.branch(content)
                case 2 where last != nil:
                    steps.append("REST deletes")
                    try story.write(nil)
                case 3 where last != nil:
                    steps.append("\(client) deletes")
                    try story.save(client, nil)
                case 4:
                    steps.append("REST \(content)")
                    try story.write(content)
                default:
                    steps.append("\(client) saves \(content)")
                    try story.save(client, content)
                }
            }
            #expect(story.failures == [])
        }
    }
}
