import Foundation
import LoveseatPlatform
import Testing

/// `inspect`, `serve --inspect` and `top`.
struct InspectorTests {
    private let folder: CommandLineFolder

    init() throws { folder = try CommandLineFolder() }

    /// Starts a command, and returns the address that it prints.
    private func page(_ arguments: String...) throws -> (process: Process, address: URL, token: String) {
        let (process, output, _) = try folder.start(arguments)
        let text = try output.text { $0.contains("?k=") && $0.hasSuffix("\n") }
        let line = try #require(text.split(separator: "\n").first { $0.contains("?k=") })
        let address = try #require(URL(string: String(line)))
        return (process, address, String(line.split(separator: "=").last ?? ""))
    }

    private func end(_ process: Process) -> Int32 {
        process.terminate()
        process.waitUntilExit()
        return process.terminationStatus
    }

    @Test func `top shows the peers of serve, and of a continuous sync`() throws {
        try folder.run("put", "a", "d", "{\"n\":1}")
        try folder.run("create", "b")
        let server = try folder.serve("a", "--open")
        let (sync, _, _) = try folder.start(["sync", "b", server.url, "--continuous"])
        try wait { try folder.run("top", "a", "--once").output.contains("incoming") }
        try wait { try folder.run("top", "b", "--once", "--json").output.contains("\"received\":1") }
        let table = try folder.run("top", "a", "--once")
        #expect(table.status == 0)
        #expect(table.lines.count == 3)
        #expect(table.lines[1].hasPrefix("PEER"))
        // A sync still refuses what only `serve` does.
        let pairing = try folder.run("pair", "forget", "b", "00")
        #expect(pairing.status != 0)
        #expect(end(sync) == 0)
        #expect(server.interrupt() == 0)
        let ended = try folder.run("top", "a", "--once")
        #expect(ended.status == 66)
        #expect(ended.errors.contains("not being served"))
        #expect(try folder.run("top", "none", "--once").status == 66)
    }

    @Test func `inspect works alone, beside serve, and ends normally`() throws {
        try folder.run("put", "a", "d", "{\"n\":1}")
        let alone = try page("inspect", "a")
        #expect(alone.address.host() == "127.0.0.1")
        let server = try folder.serve("a", "--open")
        let inside = try page("inspect", "a")
        #expect(inside.token != alone.token)
        #expect(end(inside.process) == 0)
        #expect(server.interrupt() == 0)
        #expect(end(alone.process) == 0)
        #expect(try folder.run("inspect", "none").status == 66)
        #expect(try folder.run("check", "a").status == 0)
    }

    @Test func `serve prints the address of its page`() throws {
        try folder.run("create", "a")
        let served = try page("serve", "a", "--no-tls", "--open", "--interface", "127.0.0.1", "--inspect")
        #expect(served.token.count == 32)
        #expect(end(served.process) == 0)
    }

    /// Looks until something is so, for twenty seconds. What another process knows of its peers can only be asked for.
    private func wait(_ isSo: () throws -> Bool) throws {
        let deadline = ContinuousClock.now + .seconds(20)
        while ContinuousClock.now < deadline {
            if try isSo() { return }
            usleep(50_000)
        }
        Issue.record("it did not become so within 20 seconds")
    }
}
