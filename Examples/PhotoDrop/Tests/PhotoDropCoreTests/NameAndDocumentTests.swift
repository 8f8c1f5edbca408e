import Loveseat
import PhotoDropCore
import Testing

@Suite struct FileNameTests {
    @Test(arguments: [
        ("IMG_1.jpg", "IMG_1.jpg"), ("IMG_1.JPEG", "IMG_1.JPEG"), ("../../etc/x", "x.jpg"),
        ("..\\..\\boot.ini", "boot.ini.jpg"), (".bashrc", "bashrc.jpg"), ("", "photo.jpg"),
        ("...", "photo.jpg"),
        ("a\u{0}b\u{1B}[31m.jpg", "ab[31m.jpg"), ("photo.png", "photo.jpg"),
        ("evil\u{202E}gpj.exe", "evilgpj.exe.jpg"),
        ("cafe\u{301}.jpg", "caf\u{E9}.jpg"), ("/", "photo.jpg"), ("  x .jpg", "x.jpg"),
    ])
    func cleaned(_ proposed: String, _ expected: String) {
        #expect(FileName.cleaned(proposed, type: .jpeg) == expected)
    }

    @Test(arguments: [
        ("IMG_1.CR2", ImageType.tiff), ("DSC_1.NEF", .tiff), ("DSC1.arw", .tiff), ("L1.DNG", .tiff),
        ("P1.ORF", .orf), ("P1.RW2", .rw2),
        ("DSCF1.RAF", .raf), ("IMG_1.CR3", .cr3), ("IMG_1.MOV", .mov), ("VID_1.mp4", .mp4),
        ("clip.MKV", .webm), ("a.3gp", .threeGP),
        ("MVI_1.AVI", .avi), ("IMG_1.HEIC", .heic),
    ])
    func `raw files and videos keep their names`(_ name: String, _ type: ImageType) {
        #expect(FileName.cleaned(name, type: type) == name)
        #expect(FileName.cleaned("x.exe", type: type) == "x.exe.\(type.fileExtension)")
    }

    @Test func longNames() {
        let name = FileName.cleaned(String(repeating: "é", count: 10_000) + ".jpg", type: .jpeg)
        #expect(name.utf8.count <= 200)
        #expect(name.hasSuffix("é.jpg"))
        #expect(FileName.numbered(name, 12_345).utf8.count <= 200)
    }

    @Test func numbers() {
        #expect(FileName.numbered("IMG_1.jpg", 1) == "IMG_1.jpg")
        #expect(FileName.numbered("IMG_1.jpg", 2) == "IMG_1 (2).jpg")
    }
}

@Suite struct DocumentTests {
    private let digest = "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk="
    private var reference: JSONValue {
        ["@type": "blob", "digest": .string(digest), "length": 12, "content_type": "image/jpeg"]
    }

    @Test func identicalInputMakesIdenticalDocuments() throws {
        let blob = try #require(BlobReference(reference))
        let sender = try #require(SenderID("00112233445566FF"))
        let info = try #require(ImageInfo(header: Fixtures.jpeg()))
        let photo = PhotoDocument(sender: sender, name: "a.jpg", photo: blob, info: info)
        #expect(photo.id == "photo:da39a3ee5e6b4b0d3255bfef95601890afd80709:00112233445566ff")
        #expect(photo.document.json == photo.document.json)
        let read = try #require(ReceivedPhoto(photo.document))
        #expect(read.name == "a.jpg")
        #expect(read.sender == sender)
        #expect(read.width == 3_000)
    }

    @Test func otherProgramsDocumentsArePhotos() throws {
        let attached = Document(
            id: "x",
            ["_attachments": ["photo": ["digest": .string(digest), "length": 3]]]
        )
        #expect(try #require(ReceivedPhoto(attached)).blob.digest.text == digest)
        let named = Document(id: "x", ["filename": "b.png", "image": reference])
        #expect(try #require(ReceivedPhoto(named)).name == "b.png")
        let keyed = Document(id: "x", ["c.png": reference])
        #expect(try #require(ReceivedPhoto(keyed)).name == "c.png")
        #expect(ReceivedPhoto(Document(id: "x", ["type": "note"])) == nil)
    }

    @Test func batches() throws {
        let sender = SenderID(bytes: Array(1...8))
        var batch = BatchDocument(
            random: Array(9...16),
            sender: sender,
            senderName: "Ana",
            photos: ["photo:a", "photo:b"],
            count: 2,
            bytes: 34
        )
        #expect(BatchDocument(batch.document) == batch)
        batch.isDone = true
        #expect(BatchDocument(batch.document)?.isDone == true)
        #expect(BatchDocument(Document(id: "batch:x", ["type": "batch"])) == nil)
    }
}
