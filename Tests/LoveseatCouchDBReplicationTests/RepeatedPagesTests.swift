import LoveseatCouchDBReplication
import LoveseatModel
import Testing

/// Lists of changes that repeat themselves.
struct RepeatedPagesTests {
    /// The rows of a page: documents, and the generation of their revisions.
    private func rows(_ documents: Range<Int>, _ generation: Int = 1, from sequence: Int) throws
        -> [RemoteChange]
    {
        let texts = documents.enumerated().map { index, number in
            #"{"seq":"\#(sequence + index)-x","id":"d\#(number)","changes":[{"rev":"\#(generation)-aa"}]}"#
        }
        var parser = ChangesParser()
        return try parser.receive(Array("{\"results\":[\(texts.joined(separator: ","))]".utf8))
    }

    @Test func `pages that list nothing new end with an error, whatever their sequences and sizes`() throws {
        for size in [1, 3, 500] {
            var pages = RepeatedPages()
            for number in 0..<5 { try pages.note(rows(number * size..<(number + 1) * size, from: number)) }
            for number in 0..<RepeatedPages.maximum {
                let first = number % 4 * size
                try pages.note(rows(first..<first + size, from: 1_000 + number))
            }
            let last = try rows(0..<size, from: 9_000)
            #expect(throws: LoveseatError.self) { try pages.note(last) }
        }
    }

    @Test(arguments: [0, 1])
    func `a list of as many rows as are remembered is known when it is repeated, and a longer one is not`(
        _ more: Int
    ) throws {
        let size = 5_000
        let count = RepeatedPages.maximumRows
        var list = try stride(from: 0, to: count, by: size).map { try rows($0..<$0 + size, from: $0) }
        if more > 0 { list.append(try rows(count..<count + more, from: count)) }
        var pages = RepeatedPages()
        for page in list { try pages.note(page) }
        func repeatList() throws {
            for number in 0...RepeatedPages.maximum { try pages.note(list[number % list.count]) }
        }
        if more > 0 { try repeatList() } else { #expect(throws: LoveseatError.self) { try repeatList() } }
    }

    @Test func `a new document, revision or deletion among known rows is progress`() throws {
        var pages = RepeatedPages()
        for number in 1..<3 * RepeatedPages.maximum {
            try pages.note(rows(0..<10, from: number))
            if number % 90 == 0 { try pages.note(rows(0..<1, number, from: number)) }
        }
    }

    @Test func `rows that cannot be read are rows like others`() throws {
        var parser = ChangesParser()
        _ = try parser.receive(Array(#"{"results":[{"seq":1,"id":"x"},7,"#.utf8))
        var pages = RepeatedPages()
        for _ in 0...RepeatedPages.maximum { try pages.note([], parser.unreadable) }
        let unreadable = parser.unreadable
        #expect(unreadable.count == 2)
        #expect(throws: LoveseatError.self) { try pages.note([], unreadable) }
    }
}
