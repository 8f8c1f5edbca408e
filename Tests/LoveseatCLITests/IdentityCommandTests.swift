import Foundation
import Testing

/// `loveseat identity`, and where identities are.
struct IdentityCommandTests {
    private let folder: CommandLineFolder

    init() throws { folder = try CommandLineFolder() }

    private func environment(home: String) -> [String: String] {
        ["HOME": home, "XDG_DATA_HOME": "", "LOVESEAT_IDENTITIES": ""]
    }

    @Test func `identities are in the home folder that HOME names`() throws {
        let home = environment(home: folder.path)
        #expect(try folder.run("identity", "create", "kiosk", environment: home).status == 0)
        #expect(
            FileManager.default.fileExists(
                atPath: "\(folder.path)/.local/share/loveseat/identities/kiosk.pem"
            )
        )
        #expect(try folder.run("identity", "list", environment: home).lines.count == 1)
        let other = environment(home: "\(folder.path)/other")
        #expect(try folder.run("identity", "list", environment: other).lines.isEmpty)
    }

    @Test func `without a home that can be written to, the message names LOVESEAT_IDENTITIES`() throws {
        try folder.write("", to: "file")
        let outcome = try folder.run(
            "identity",
            "create",
            "kiosk",
            environment: environment(home: "\(folder.path)/file")
        )
        #expect(outcome.status == 77)
        #expect(outcome.errors.contains("set LOVESEAT_IDENTITIES to a folder"), "\(outcome.errors)")
    }

    @Test(arguments: ["*.", "..", "a..b", "a/b", "*", "*.com", "a.*.com", "a*.example.com"])
    func `a host name that no host can have is refused`(_ name: String) throws {
        let identities = ["LOVESEAT_IDENTITIES": "\(folder.path)/identities"]
        let outcome = try folder.run("identity", "create", "x", "--dns", name, environment: identities)
        #expect(outcome.status == 64, "\(outcome.errors)")
        #expect(try folder.run("identity", "list", environment: identities).lines.isEmpty)
    }

    @Test func `host names, and a wildcard for those of a domain, are accepted`() throws {
        let identities = ["LOVESEAT_IDENTITIES": "\(folder.path)/identities"]
        let names = "kiosk.local,localhost,*.example.com,xn--mnchen-3ya.example,a_b.example."
        let outcome = try folder.run("identity", "create", "x", "--dns", names, environment: identities)
        #expect(outcome.status == 0, "\(outcome.errors)")
    }
}
