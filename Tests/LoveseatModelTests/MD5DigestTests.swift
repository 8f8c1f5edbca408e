import Crypto
import LoveseatModel
import Testing

/// The names that peers of CouchDB's wire give to contents.
struct MD5DigestTests {
    @Test func `a digest is read back from its text and from its bytes`() throws {
        for number in 0..<100 {
            let bytes = Array(Insecure.MD5.hash(data: [UInt8(number)]))
            let digest = try #require(MD5Digest(bytes: bytes))
            #expect(digest.bytes == bytes)
            #expect(digest.text.utf8.count == 28)
            #expect(MD5Digest(digest.text) == digest)
        }
        // As CouchDB names empty content.
        #expect(
            MD5Digest(bytes: Array(Insecure.MD5.hash(data: [UInt8]())))?.text
                == "md5-1B2M2Y8AsgTpgAmY7PhCfg=="
        )
    }

    @Test(arguments: [
        "", "md5-", "md5", "sha1-1B2M2Y8AsgTpgAmY7PhCfg==", "md5-1B2M2Y8AsgTpgAmY7PhCf===",
        "md5-1B2M2Y8AsgTpgAmY7PhCfh==", "md5-1B2M2Y8AsgTpgAmY7PhCfg", "md5-1B2M2Y8AsgTpgAmY7PhCfgAA",
        "MD5-1B2M2Y8AsgTpgAmY7PhCfg==", "md5-1B2M2Y8AsgTpgAmY7PhCfg==1B2M",
        "md5-d41d8cd98f00b204e9800998ecf8427e",
    ])
    func `another text is not a digest`(_ text: String) { #expect(MD5Digest(text) == nil) }

    @Test func `another number of bytes is not an MD5`() {
        for count in [0, 15, 17, 20] { #expect(MD5Digest(bytes: [UInt8](repeating: 0, count: count)) == nil) }
    }
}
