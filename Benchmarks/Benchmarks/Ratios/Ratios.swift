import Benchmark
import Foundation
import Rows

/// Each benchmark measures some rows of the table in README.md once: the work takes minutes, and what counts is the ratio
/// of two sides that took turns, not the spread. The harness shows ratios (or absolute figures) in thousandths, and this
/// prints the table's lines.
let benchmarks: @Sendable () -> Void = {
    let count = ProcessInfo.processInfo.environment["DOCUMENTS"].flatMap { Int($0) } ?? 1_000_000
    add("json", ["validate and index"]) { [LocalRows.json()] }
    add("insert", ["bulk insert"]) { [try LocalRows.bulkInsert(100_000)] }
    add("get", ["get", "save"]) { try LocalRows.getAndSave(100_000) }
    add("sync", ["push", "pull"]) { try await PeerRows.pushAndPull(100_000) }
    add("tls", ["push, TLS", "pull, TLS", "push, not compressed", "pull, not compressed"]) {
        try await PeerRows.secured(50_000)
    }
    add("crowd", ["MB a peer", "documents/s"]) { try await CrowdRows.crowd(200, documents: 20) }
    add("siege", ["push"]) { try await CrowdRows.siege(50_000) }
    add("delta", ["push", "bytes saved"]) { try await PeerRows.deltas(20_000) }
    add("flat", ["last tenth", "memory growth, MB", "no-op, ms"]) { try await PeerRows.flatness(count) }
    add("latency", ["save to visible, ms"]) { [try await PeerRows.latency(500)] }
    add("blob", ["MB/s"]) { [try await PeerRows.blob(200)] }
}

/// `figures`: the names of the rows' ratios or absolute figures.
private func add(_ name: String, _ figures: [String], _ measure: @escaping @Sendable () async throws -> [Row]) {
    let metrics = figures.map {
        BenchmarkMetric.custom("\($0), 1/1000", polarity: .prefersLarger, useScalingFactor: false)
    }
    let configuration = Benchmark.Configuration(
        metrics: metrics,
        warmupIterations: 0,
        maxDuration: .seconds(3_600),
        maxIterations: 1
    )
    Benchmark(name, configuration: configuration) { benchmark in
        for (metric, row) in zip(metrics, try await measure()) {
            benchmark.measurement(metric, Int((row.figure * 1_000).rounded()))
            print(row.line)
        }
        fflush(nil)
    }
}
