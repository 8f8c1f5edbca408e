import Foundation
import Loveseat
import PhotoDropKit
import Testing

@Suite struct PhotoFolderTests {
    private func folder(_ scratch: SessionTests.Scratch) throws -> PhotoFolder {
        try PhotoFolder(path: "\(scratch.path)/photos", session: "1")
    }

    private func save(_ text: String, as name: String, in folder: PhotoFolder) throws -> String {
        let part = try folder.begin("digest")
        try part.write(text.utf8)
        return try folder.finish(part, name: name, date: "2026-11-21T10:00:00").name
    }

    @Test func nothingIsOverwritten() throws {
        let scratch = try SessionTests.Scratch()
        let folder = try folder(scratch)
        #expect(try save("one", as: "a.jpg", in: folder) == "a.jpg")
        #expect(try save("two", as: "a.jpg", in: folder) == "a (2).jpg")
        #expect(try String(contentsOfFile: "\(folder.path)/a.jpg", encoding: .utf8) == "one")
    }

    @Test func linksAreNotFollowed() throws {
        let scratch = try SessionTests.Scratch()
        let folder = try folder(scratch)
        let target = "\(scratch.path)/target"
        #expect(symlink(target, "\(folder.path)/a.jpg") == 0)
        #expect(symlink(target, "\(folder.path)/.part-1-digest") == 0)
        #expect(try save("one", as: "a.jpg", in: folder) == "a (2).jpg")
        #expect(!FileManager.default.fileExists(atPath: target))
    }

    @Test func filesHaveTheTimeOfThePhoto() throws {
        let scratch = try SessionTests.Scratch()
        let folder = try folder(scratch)
        let name = try save("one", as: "a.jpg", in: folder)
        let attributes = try FileManager.default.attributesOfItem(atPath: "\(folder.path)/\(name)")
        let date = try #require(attributes[.modificationDate] as? Date)
        #expect(Calendar.current.component(.year, from: date) == 2026)
        #expect(Calendar.current.component(.hour, from: date) == 10)
    }

    private func save(_ content: [UInt8], _ folder: PhotoFolder) throws -> String {
        let part = try folder.begin("digest")
        try part.write(content)
        return try folder.finish(part, name: "photo.jpg", date: nil).name
    }

    @Test func `other files of one name get numbers, and the same content is kept once`() throws {
        let scratch = try SessionTests.Scratch()
        let path = "\(scratch.path)/photos"
        let long = [UInt8](repeating: 7, count: 3_000_000)
        let contents: [(content: [UInt8], name: String)] = [
            ([1, 2, 3], "photo.jpg"), ([1, 2, 4], "photo (2).jpg"), ([1, 2], "photo (3).jpg"),
            (long, "photo (4).jpg"), (long + [8], "photo (5).jpg"), (long, "photo (4).jpg"),
            ([1, 2, 4], "photo (2).jpg"), ([], "photo (6).jpg"), ([], "photo (6).jpg"),
        ]
        for (content, name) in contents {
            // A receiver that was killed and continues opens the folder anew.
            let folder = try PhotoFolder(path: path, session: "s")
            #expect(try save(content, folder) == name)
        }
        let names = try FileManager.default.contentsOfDirectory(atPath: path)
        #expect(names.count == 6)
    }

    @Test func `a file that was there already is not new`() throws {
        let scratch = try SessionTests.Scratch()
        let folder = try folder(scratch)
        for isNew in [true, false] {
            let part = try folder.begin("digest")
            try part.write([1, 2, 3] as [UInt8])
            let file = try folder.finish(part, name: "photo.jpg", date: nil)
            #expect(file.name == "photo.jpg")
            #expect(file.isNew == isNew)
        }
    }

    @Test func `only the content that was written is removed`() throws {
        let scratch = try SessionTests.Scratch()
        let folder = try folder(scratch)
        #expect(try save("abc", as: "a.jpg", in: folder) == "a.jpg")
        #expect(!folder.remove("a.jpg", ifItsDigestIs: "da39a3ee5e6b4b0d3255bfef95601890afd80709"))
        #expect(folder.remove("a.jpg", ifItsDigestIs: "a9993e364706816aba3e25717850c26c9cd0d89d"))
        #expect(!folder.remove("a.jpg", ifItsDigestIs: "a9993e364706816aba3e25717850c26c9cd0d89d"))
    }

    @Test func `what only looks like the same file is not taken for it`() throws {
        let scratch = try SessionTests.Scratch()
        let path = "\(scratch.path)/photos"
        let folder = try PhotoFolder(path: path, session: "s")
        let manager = FileManager.default
        try manager.createDirectory(atPath: path + "/photo.jpg", withIntermediateDirectories: false)
        try Data([1, 2, 3]).write(to: URL(filePath: path + "/elsewhere"))
        try manager.createSymbolicLink(atPath: path + "/photo (2).jpg", withDestinationPath: "elsewhere")
        #expect(mkfifo(path + "/photo (3).jpg", 0o600) == 0)
        #expect(try save([1, 2, 3], folder) == "photo (4).jpg")
    }
}
