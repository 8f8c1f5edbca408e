import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatTesting
import Testing

/// What a feed passes over never comes again.
struct FeedCompletenessTests {
    @Test(arguments: ["", "&feed=longpoll&timeout=1000", "&limit=7"])
    func `a feed that is read from where it ended names everything that is saved meanwhile`(_ options: String)
        async throws
    {
        let served = try await ServedDatabase()
        let collection = try served.database.defaultCollection()
        let count = 3_000
        let writer = Task.detached {
            for number in 0..<count {
                var document = Document(id: "d\(number)")
                try collection.save(&document)
            }
        }
        var (seen, last): (Set<ExactText>, String) = ([], "0")
        while seen.count < count {
            // Asked first: the writer may end between the answer and this line.
            let isWritten = collection.count == count
            let answer = try await served.call("GET", "/main/_changes?since=\(last)\(options)").json
            let rows = answer["results"]?.array ?? []
            for row in rows { seen.insert(ExactText(row["id"]?.string ?? "")) }
            let next = answer["last_seq"]?.int.map { String($0) } ?? answer["last_seq"]?.string ?? ""
            guard next == last, rows.isEmpty else {
                last = next
                continue
            }
            // Nothing more comes: what is missing now is missing for ever.
            if isWritten { break }
        }
        try await writer.value
        #expect(seen.count == count, "\(count - seen.count) documents were passed over")
        await served.listener.stop()
    }
}
