import Foundation
import LoveseatTesting
import Testing

/// A host whose network comes after the replicator: a network namespace of the test's own, which takes root.
@Suite(.enabled(if: getuid() == 0 && FileManager.default.isExecutableFile(atPath: "/usr/bin/unshare")))
struct NetworkChangeTests {
    @Test func `a replicator that is offline tries at once when the network comes`() throws {
        let folder = try CommandLineFolder()
        try folder.run("create", "a")
        try folder.run("put", "a", "d", "{\"n\":1}")
        try folder.run("create", "b")
        // The next attempt would come after 300 seconds; the interface comes while it waits for that.
        let script = """
            set -e
            exec 2> problems
            trap 'kill $(jobs -p) 2> /dev/null || true' EXIT
            ip link set lo up
            "$1" serve b --port 5599 --no-tls > urls &
            server=$!
            "$1" sync a ws://10.9.9.1:5599/b --continuous --max-wait 300 --verbose 2> log &
            client=$!
            until [ "$(grep -c 'offline: ' log)" -ge 2 ]; do sleep 0.1; done
            ip link add d0 type veth peer name d1
            ip addr add 10.9.9.1/24 dev d0
            ip link set d0 up
            ip link set d1 up
            until grep -q 'pushed _default._default/d' log; do sleep 0.1; done
            kill -TERM $client
            wait $client
            kill -TERM $server
            wait $server
            """
        try folder.write(script, to: "script")
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/unshare")
        process.arguments = ["-n", "timeout", "60", "bash", "script", try CommandLineFolder.program.path]
        process.currentDirectoryURL = URL(filePath: folder.path)
        try Lifeline.run(process)
        process.waitUntilExit()
        let log = try ["log", "problems"].map {
            try String(contentsOfFile: "\(folder.path)/\($0)", encoding: .utf8)
        }.joined()
        #expect(process.terminationStatus == 0, "\(log)")
        #expect(log.contains("the network changed"))
        #expect(try folder.run("get", "b", "d").status == 0)
    }
}
