// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that what measures is nobody else's dependency.
let package = Package(
    name: "benchmarks",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "loveseat", path: ".."),
        // Its interposers count allocations, which nothing here looks at.
        .package(url: "https://github.com/ordo-one/benchmark", from: "1.38.1", traits: []),
    ],
    targets: [
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .target(name: "Rows", dependencies: ["CSQLite", .product(name: "Loveseat", package: "loveseat")]),
        // The other process of the rows that need one.
        .executableTarget(
            name: "BenchmarkPeer",
            dependencies: [.product(name: "Loveseat", package: "loveseat")]
        ),
        .executableTarget(
            name: "Ratios",
            dependencies: ["Rows", "BenchmarkPeer", .product(name: "Benchmark", package: "benchmark")],
            path: "Benchmarks/Ratios",
            plugins: [.plugin(name: "BenchmarkPlugin", package: "benchmark")]
        ),
    ]
)
