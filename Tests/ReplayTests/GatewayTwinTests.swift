import Foundation
import LoveseatTesting
import Testing

/// The gateway's twin against what real Sync Gateways said (Tests/Fixtures/gateway).
struct GatewayTwinTests {
    /// Recordings that the twin cannot replay, with the reason. The `gateway-active-…` recordings are not among the fixtures:
    /// in them the gateway is the active peer, and the twin is a passive one.
    static let exceptions: [String: String] = {
        let reasons = [
            "attachment-replaced": "the request that replaced the attachment is not in the recording",
            "continuous-pull": "the connection of the client that pushed in between is not in the recording",
            "other-protocol-answered": "the recorder rewrote the gateway's answer",
            "too-many": "the configured number of replications is not in the recording",
        ]
        return reasons.reduce(into: [:]) { exceptions, reason in
            for version in ["337", "411"] { exceptions["gateway-\(reason.key)-\(version)"] = reason.value }
        }
    }()

    /// All recordings, by their names. `LOVESEAT_GATEWAY_RECORDINGS` names a further folder.
    static let recordings: [String: URL] = {
        let tests = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        var folders = [tests.appending(path: "Fixtures/gateway")]
        if let path = ProcessInfo.processInfo.environment["LOVESEAT_GATEWAY_RECORDINGS"] {
            folders.append(URL(filePath: path))
        }
        var found: [String: URL] = [:]
        for folder in folders {
            let files = try? FileManager.default.contentsOfDirectory(
                at: folder,
                includingPropertiesForKeys: nil
            )
            for file in files ?? [] where file.lastPathComponent.hasSuffix(".trace.jsonl") {
                found[String(file.lastPathComponent.dropLast(12))] = file
            }
        }
        return found
    }()

    @Test(arguments: recordings.keys.sorted())
    func `the twin says what the gateway said`(_ name: String) throws {
        let file = try #require(Self.recordings[name])
        let recording = try GatewayRecording(String(contentsOf: file, encoding: .utf8))
        let differences = GatewayReplay.differences(in: recording)
        if let reason = Self.exceptions[name] {
            #expect(!differences.isEmpty, "\(name) is replayed now, although \(reason)")
        } else {
            #expect(differences.isEmpty, "\(name): \(differences.prefix(3).joined(separator: "\n"))")
        }
    }
}
