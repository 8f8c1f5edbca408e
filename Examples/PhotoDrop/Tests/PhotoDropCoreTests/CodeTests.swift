import Foundation
import PhotoDropCore
import Testing

@Suite struct CodeTests {
    private let secret = DropSecret(bytes: Array(0..<16))
    private let fingerprint = String(repeating: "5f1c", count: 16)

    private func code(urls: [String] = ["wss://192.168.1.7:55990/drop"], name: String? = "Ana's laptop")
        throws -> DropCode
    {
        DropCode(
            urls: urls.compactMap { URL(string: $0) },
            pin: try #require(DropPin(fingerprint: fingerprint)),
            secret: secret.full,
            session: "0123456789abcdef",
            name: name
        )
    }

    @Test func codeSaysWhetherCouchDBIsServed() throws {
        let plain = try code()
        #expect(try !DropCode(text: plain.text).hasCouchDB)
        let both = DropCode(
            urls: plain.urls,
            pin: plain.pin,
            secret: plain.secret,
            session: plain.session,
            name: nil,
            hasCouchDB: true
        )
        #expect(both.text.hasSuffix("&c=1"))
        #expect(try DropCode(text: both.text) == both)
    }

    @Test func fullFormRoundTrips() throws {
        let code = try code()
        let text = code.text
        #expect(text.hasPrefix("photodrop:1?u=wss://192.168.1.7:55990/drop&p="))
        #expect(text.utf8.allSatisfy { (0x20...0x7E).contains($0) })
        #expect(try DropCode(text: text) == code)
        #expect(code.secret.utf8.count == 22)
        #expect(code.username == "drop-0123456789abcdef")
    }

    @Test func nameMayHaveAnyLetters() throws {
        let code = try code(name: "Zoë's 電話 & more")
        #expect(try DropCode(text: code.text).name == "Zoë's 電話 & more")
    }

    @Test func compactFormRoundTrips() throws {
        let text = try #require(try code().compactText(secret: secret))
        #expect(text.utf8.count <= 110)
        let read = try DropCode(text: text.lowercased())
        #expect(read.urls.map(\.absoluteString) == ["wss://192.168.1.7:55990/drop"])
        #expect(read.secret == secret.compact)
        #expect(read.session == nil)
        #expect(read.pin.matches(fingerprint: fingerprint))
        #expect(!read.pin.matches(fingerprint: "00" + fingerprint.dropFirst(2)))
    }

    @Test func compactFormTakesIPv6() throws {
        let code = try code(urls: ["wss://[2001:db8::7]:55990/drop"])
        let text = try #require(code.compactText(secret: secret))
        #expect(try DropCode(text: text).urls.map(\.absoluteString) == ["wss://[2001:db8::7]:55990/drop"])
    }

    @Test(arguments: [
        "", "hello", "http://example.com/", "photodrop:", "photodrop:1", "photodrop:1?u=wss://a:1/drop",
        "PHOTODROP:1:HOST:PORT:PIN:SECRET",
    ])
    func otherTextsAreRefused(_ text: String) {
        let error = #expect(throws: DropError.self) { try DropCode(text: text) }
        #expect(error?.kind == .data)
    }

    @Test func newerVersionsAreRecognised() {
        let error = #expect(throws: DropError.self) { try DropCode(text: "photodrop:2?x=y") }
        #expect(error?.message.contains("newer version") == true)
    }

    @Test func base32() {
        #expect(Base32.encode(Array("foobar".utf8)) == "MZXW6YTBOI")
        #expect(Base32.decode("mzxw6ytboi") == Array("foobar".utf8))
        #expect(Base32.decode("1") == nil)
    }

    @Test func compactCodeFitsInto24Lines() throws {
        let compact = try #require(try code().compactText(secret: secret))
        let terminal = TerminalCode.Capabilities(columns: 80, rows: 24, hasUTF8: true, hasColours: true)
        let rendered = try #require(
            try TerminalCode(full: try code().text, compact: compact, in: terminal)
        )
        #expect((19...23).contains(rendered.lines.count))
    }

    @Test func largerWindowsShowTheFullCode() throws {
        let code = try code()
        let terminal = TerminalCode.Capabilities(columns: 120, rows: 50, hasUTF8: true, hasColours: true)
        let rendered = try #require(try TerminalCode(full: code.text, compact: nil, in: terminal))
        let width = try QRCode(code.text, level: .low).width
        #expect(rendered.lines.count == (width + 8 + 1) / 2)
    }

    @Test func tinyWindowsShowNone() throws {
        let terminal = TerminalCode.Capabilities(columns: 30, rows: 24, hasUTF8: true, hasColours: true)
        #expect(try TerminalCode(full: try code().text, compact: nil, in: terminal) == nil)
    }

    @Test func plainTerminalsShowHashes() throws {
        let compact = try #require(try code().compactText(secret: secret))
        let terminal = TerminalCode.Capabilities(columns: 100, rows: 24, hasUTF8: false, hasColours: true)
        let rendered = try #require(try TerminalCode(full: compact, compact: compact, in: terminal))
        #expect(rendered.lines.joined().allSatisfy { "# ".contains($0) })
    }
}
