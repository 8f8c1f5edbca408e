import Foundation
import LoveseatPlatform
import Testing

/// What processes say to each other over the socket in a database's folder.
@Suite(.timeLimit(.minutes(2))) struct ControlSocketTests {
    private let folder: CommandLineFolder
    private var path: String { "\(folder.path)/db.loveseat/control" }

    init() throws {
        folder = try CommandLineFolder()
        try folder.run("create", "db")
    }

    /// A socket that was connected or bound at the path.
    private func socket(_ use: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Bool) throws -> Int32 {
        let descriptor = LoveseatPlatform.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let path = path
        let fits = withUnsafeMutableBytes(of: &address.sun_path) { place in
            guard path.utf8.count < place.count else { return false }
            place.copyBytes(from: path.utf8)
            return true
        }
        try #require(fits)
        let isUsed = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                use(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try #require(isUsed)
        return descriptor
    }

    @Test(arguments: [#"{"dance":true}"#, #"{"showPairing":-1}"#, "no JSON"])
    func `a request that serve does not know is answered with an error`(_ request: String) throws {
        let server = try folder.serve("db")
        let descriptor = try socket { connect($0, $1, $2) == 0 }
        let connection = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        try connection.write(contentsOf: Data("\(request)\n".utf8))
        let answer = String(decoding: connection.readDataToEndOfFile(), as: UTF8.self)
        #expect(answer.contains("\"error\""), "\(answer)")
        #expect(server.interrupt() == 0)
    }

    @Test func `a reply that is not known is an error`() throws {
        let server = try folder.serve("db")
        try FileManager.default.removeItem(atPath: path)
        let listener = try socket { bind($0, $1, $2) == 0 && listen($0, 8) == 0 }
        defer { close(listener) }
        let (process, _, errors) = try folder.start(["pair", "forget", "db", "00"])
        let descriptor = accept(listener, nil, nil)
        try #require(descriptor >= 0)
        let connection = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        try connection.write(contentsOf: Data("{\"sure\":true}\n".utf8))
        let said = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        #expect(process.terminationStatus == 76)
        #expect(said.contains("not known"), "\(said)")
        #expect(server.interrupt() == 0)
    }

    @Test func `a socket that cannot be reached is named with the reason, and one that is not there is not`()
        throws
    {
        let server = try folder.serve("db")
        try FileManager.default.removeItem(atPath: path)
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "control")
        let unreachable = try folder.run("pair", "forget", "db", "00")
        #expect(unreachable.status != 0)
        #expect(unreachable.errors.contains("symbolic links"), "\(unreachable.errors)")
        #expect(!unreachable.errors.contains("another process"), "\(unreachable.errors)")
        try FileManager.default.removeItem(atPath: path)
        let absent = try folder.run("pair", "forget", "db", "00")
        #expect(absent.status == 75)
        #expect(absent.errors.contains("another process"), "\(absent.errors)")
        #expect(server.interrupt() == 0)
    }
}
