import Foundation
import PhotoDropCore
import Testing

@Suite struct LegacyCodeTests {
    @Test func textRoundTrips() throws {
        let text = "http://drop:p%40ss%3Aword@192.168.1.7:55990/drop"
        let code = try LegacyCode(text: " \(text)\n")
        #expect(code.url.absoluteString == "http://192.168.1.7:55990/drop")
        #expect(code.username == "drop")
        #expect(code.password == "p@ss:word")
        #expect(try LegacyCode(text: code.text) == code)
    }

    @Test func receiverShowsItsURLWithoutEncryption() throws {
        let url = try #require(URL(string: "ws://[fd00::7]:55990/drop"))
        let code = try #require(LegacyCode(url: url, username: "drop-1", password: "secret"))
        #expect(code.text == "http://drop-1:secret@[fd00::7]:55990/drop")
    }

    @Test(
        arguments: [
            "", "http://", "http://192.168.1.7/drop", "http://ana@192.168.1.7/drop",
            "http://ana:@192.168.1.7/drop",
            "http://ana:s3cret@192.168.1.7:55990/", "http://ana:s3cret@192.168.1.7:55990/a/b",
            "http://ana:s3cret@192.168.1.7:99999/drop?x=1", "https://ana:s3cret@192.168.1.7:55990/drop",
            "photodrop:1?u=x",
        ]
    )
    func otherTextsAreRefused(_ text: String) {
        #expect(throws: DropError.self) { try LegacyCode(text: text) }
    }

    @Test func longTextsAreRefused() {
        let text = "http://ana:\(String(repeating: "x", count: 3_000))@192.168.1.7:55990/drop"
        #expect(throws: DropError.self) { try LegacyCode(text: text) }
    }
}
