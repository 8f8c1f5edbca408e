import LoveseatTesting
import Testing

/// Histories of Loveseats and modelled peers of Couchbase Lite 4, whose documents have blobs.
struct VersionBlobTests {
    @Test(arguments: 1...12 as ClosedRange<UInt64>)
    func `each peer that has a document has its blobs`(_ seed: UInt64) throws {
        var simulation = VersionSimulation(seed: seed)
        simulation.edits = 30
        simulation.hasBlobs = true
        let report = try simulation.run()
        #expect(report.problems.filter { $0.contains("blob") || $0.contains("failed") } == [])
        #expect(report.revisions > 0)
        #expect(try simulation.run() == report, "two runs differ")
    }
}
