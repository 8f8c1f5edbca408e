import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatTesting
import Testing

/// How values of Foundation's types are stored.
struct CodableTests {
    private let scratch: Scratch
    private let collection: LoveseatCore.Collection

    init() throws {
        scratch = try Scratch()
        collection = try scratch.database("db").defaultCollection()
    }

    private struct Price: Codable, Identifiable, Equatable {
        var id = "price"
        var amount: Decimal
        var parts: [Decimal] = []
    }

    private struct Visit: Codable, Identifiable, Equatable {
        var id = "visit"
        var time: Date
    }

    @Test(arguments: [
        "0", "12.5", "-0.1", "19.99", "1234567890123456.7", "0.30000000000000001",
        "12345678901234567890123456789012345678", "-123456789012345678901234567890.12345678",
        "0.00000000000000000000000000000000000001",
    ])
    func `a decimal is a number, and keeps every digit`(_ text: String) throws {
        let amount = try #require(Decimal(string: text, locale: Locale(identifier: "en_US_POSIX")))
        let price = Price(amount: amount, parts: [amount, 1])
        try collection.save(price)
        let document = try #require(try collection.document(id: "price"))
        guard case .number(let number) = document["amount"] else {
            Issue.record("\(document["amount"] ?? .null) is not a number")
            return
        }
        #expect(Decimal(string: number.text, locale: Locale(identifier: "en_US_POSIX")) == amount)
        #expect(try collection.document(id: "price", as: Price.self) == price)
    }

    @Test func `a decimal is read from any number of its range, and from what earlier versions stored`()
        throws
    {
        let texts = [("1e3", "1000"), ("2.50", "2.5"), ("18446744073709551616", "18446744073709551616")]
        for (written, read) in texts {
            try collection.save(Document(id: "price", json: "{\"amount\":\(written),\"parts\":[]}"))
            #expect(try collection.document(id: "price", as: Price.self)?.amount.description == read)
        }
        try collection.save(Document(id: "price", json: "{\"amount\":1e300,\"parts\":[]}"))
        expectError(.decodingError) { try collection.document(id: "price", as: Price.self) }
        try collection.save(Document(id: "price", json: "{\"amount\":\"1\",\"parts\":[]}"))
        expectError(.decodingError) { try collection.document(id: "price", as: Price.self) }
        try collection.save(OldPrice())
        #expect(try collection.document(id: "price", as: Price.self)?.amount.description == "19.99")
    }

    /// What 0.1 stored: a decimal as the type encodes itself.
    private struct OldPrice: Encodable, Identifiable {
        struct Amount: Encodable {
            let exponent = -2
            let length = 1
            let isNegative = false
            let isCompact = true
            let mantissa = [1_999, 0, 0, 0, 0, 0, 0, 0]
        }
        let id = "price"
        let amount = Amount()
        let parts: [Int] = []
    }

    @Test func `a decimal that is not a number is refused`() {
        expectError(.encodingError) { try collection.save(Price(amount: .nan)) }
    }

    @Test func `a date that is read and saved again stays the same millisecond`() throws {
        for year in ["1900", "1969", "2026", "3999"] {
            for millisecond in stride(from: 0, to: 1_000, by: 49) {
                let digits = String(String(1_000 + millisecond).dropFirst())
                let text = "\(year)-03-01T09:30:00.\(digits)Z"
                try collection.save(Document(id: "visit", json: "{\"time\":\"\(text)\"}"))
                let visit = try #require(try collection.document(id: "visit", as: Visit.self))
                try collection.save(visit)
                #expect(try collection.document(id: "visit")?["time"] == .string(text))
            }
        }
    }

    @Test func `a date is rounded to the nearest millisecond`() throws {
        for (seconds, text) in [(0.000_4, "00.000Z"), (0.000_6, "00.001Z"), (0.999_6, "01.000Z")] {
            try collection.save(Visit(time: Date(timeIntervalSince1970: 1_700_000_000 + 40 + seconds)))
            let stored = try #require(try collection.document(id: "visit")?["time"]?.string)
            #expect(stored.hasSuffix(text), "\(stored)")
        }
    }
}
