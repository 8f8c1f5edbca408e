// swift-tools-version: 6.2
import PackageDescription

// Apart from the benchmarks beside it, so that CI can build it without their library.
let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]
let loveseat = Target.Dependency.product(name: "Loveseat", package: "loveseat")

let package = Package(
    name: "programs",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "loveseat", path: "../.."),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    ],
    targets: [
        // Queries against raw SQLite.
        .target(
            name: "CRawQueries",
            dependencies: [.product(name: "GRDBSQLite", package: "GRDB.swift")],
            path: "CRawQueries"
        ),
        .executableTarget(
            name: "QueryRatios",
            dependencies: [
                "CRawQueries", loveseat, .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "QueryRatios",
            swiftSettings: settings
        ),
        // Calls of CouchbaseLiteSwift against those of Loveseat.
        .executableTarget(
            name: "FacadeRatios",
            dependencies: [
                loveseat, .product(name: "CouchbaseLiteSwift", package: "loveseat"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "FacadeRatios",
            swiftSettings: settings
        ),
        // Gets, saves and inserts for `turns.py`.
        .executableTarget(
            name: "ApiSpeed",
            dependencies: [loveseat],
            path: "ApiSpeed",
            swiftSettings: settings
        ),
    ]
)
