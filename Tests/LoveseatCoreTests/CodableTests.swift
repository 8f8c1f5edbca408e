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

    /// Days since 1970 of the first of January, counted year by year.
    private static let newYears = {
        var days = [0: -719_528]
        for year in 0..<9_999 {
            let isLeap = year % 4 == 0 && year % 100 != 0 || year % 400 == 0
            days[year + 1] = (days[year] ?? 0) + (isLeap ? 366 : 365)
        }
        return days
    }()

    @Test func `dates of all years are written in the Gregorian calendar, and read by the same`() throws {
        #expect(Self.newYears[1970] == 0)
        var dice = SeededGenerator(seed: 1582)
        for year in 0...9_999 {
            let day = Int.random(in: 0..<365, using: &dice)
            let millisecond = Int.random(in: 0..<86_400_000, using: &dice)
            let isLeap = year % 4 == 0 && year % 100 != 0 || year % 400 == 0
            var (month, rest) = (1, day)
            for days in [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
                guard rest >= days else { break }
                rest -= days
                month += 1
            }
            let (hour, minute) = (millisecond / 3_600_000, millisecond / 60_000 % 60)
            let text = String(
                format: "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ",
                year,
                month,
                rest + 1,
                hour,
                minute,
                millisecond / 1_000 % 60,
                millisecond % 1_000
            )
            let seconds = try #require(Self.newYears[year]) * 86_400 + day * 86_400 - 978_307_200
            let date = Date(timeIntervalSinceReferenceDate: Double(seconds * 1_000 + millisecond) / 1_000)
            var document = Document(id: "visit")
            document["time"] = date
            #expect(document["time"] == .string(text))
            #expect(try document.decode(Visit.self).time == date)
        }
    }

    @Test(arguments: [
        ("1500-01-01T00:00:00Z", "1500-01-01T00:00:00.000Z"),
        ("2026-03-01T09:30:00+01:00", "2026-03-01T08:30:00.000Z"),
        ("2026-03-01T09:30:00.5-0130", "2026-03-01T11:00:00.500Z"),
        ("2026-03-01t09:30:00,25z", "2026-03-01T09:30:00.250Z"),
        ("2026-12-31T23:59:60Z", "2027-01-01T00:00:00.000Z"),
        ("2024-02-28T24:00:00Z", "2024-02-29T00:00:00.000Z"),
        ("2026-03-01T09:30:00.123456789012Z", "2026-03-01T09:30:00.123Z"),
        ("2026-03-01T09:30:00+05", "2026-03-01T04:30:00.000Z"),
    ])
    func `a date is read in any zone, with any fraction`(_ text: String, _ written: String) throws {
        var document = Document(id: "visit", ["time": .string(text)])
        let visit = try document.decode(Visit.self)
        try document.encode(visit)
        #expect(document["time"] == .string(written))
    }

    @Test(arguments: [
        "", "2026-03-01", "2026-02-30T00:00:00Z", "2025-02-29T00:00:00Z", "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-03-01T24:00:01Z", "2026-03-01T09:60:00Z", "2026-03-01T09:30:00", "2026-03-01T09:30:00Zjunk",
        "12026-03-01T09:30:00Z",
        "-0001-03-01T09:30:00Z", "0000-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00",
        "2026-03-01T09:30:00.Z", "x",
        "2026-03-01T09:30:00+24:00", "2026-03-01T09:30:00+01:", "2026-03-01T09:30:00.99999999999999999999999",
    ])
    func `text that is not a date is refused`(_ text: String) {
        expectError(.decodingError) { try Document(id: "visit", ["time": .string(text)]).decode(Visit.self) }
    }

    @Test func `a date beyond the years of four digits is refused`() throws {
        let last = Date(timeIntervalSince1970: 253_402_300_800)
        for date in [
            last, last.addingTimeInterval(-0.000_1), Date(timeIntervalSince1970: -62_167_219_201),
            Date(timeIntervalSince1970: .infinity),
            Date(timeIntervalSince1970: .nan), Date(timeIntervalSince1970: -1e300),
        ] {
            expectError(.encodingError) { try collection.save(Visit(time: date)) }
        }
        for date in [Date.distantPast, .distantFuture, last.addingTimeInterval(-1)] {
            try collection.save(Visit(time: date))
            #expect(try collection.document(id: "visit", as: Visit.self)?.time == date)
        }
    }

    @Test(arguments: [
        "{\"a\":", "[1,2]", "", "{\"a\":1} x", "{\"a\":1,\"a\":2}", "nul", "{\"a\":\"\\ud800\"}",
        "{\"a\":01}", "1",
    ])
    func `text that is not a JSON object is refused with the error that everything throws`(_ text: String) {
        expectError(.invalidJSON) { try Document(id: "d", json: text) }
        expectError(.invalidJSON) { try Document(id: "d", json: Array(text.utf8)) }
        if text != "[1,2]", text != "1", !text.hasPrefix("{\"a\":1,") {
            expectError(.invalidJSON) { try JSONValue(parsing: text) }
            expectError(.invalidJSON) { try JSONElement(parsing: Array(text.utf8)) }
            expectError(.invalidJSON) { try JSONText(text) }
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
