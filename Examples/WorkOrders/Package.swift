// swift-tools-version: 6.2
import PackageDescription

/// Warnings are errors only where CI asks for it, so that a new compiler's warning never breaks a user.
let strict: [SwiftSetting] =
    [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
    ] + (Context.environment["LOVESEAT_STRICT"] == nil ? [] : [.treatAllWarnings(as: .error)])

let libraries: [Target.Dependency] = [
    .product(name: "Loveseat", package: "loveseat"),
    .product(name: "Crypto", package: "swift-crypto"),
    .product(name: "Hummingbird", package: "hummingbird"),
    .product(name: "Logging", package: "swift-log"),
    .product(name: "Metrics", package: "swift-metrics"),
    .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
]

let package = Package(
    name: "workorders",
    platforms: [.macOS(.v15)],
    products: [.executable(name: "workorders", targets: ["workorders"])],
    dependencies: [
        // A server of your own needs none of the package's traits: add `traits: []`.
        .package(name: "loveseat", path: "../.."),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.26.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics.git", from: "2.10.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle.git", from: "2.11.0"),
    ],
    targets: [
        .target(name: "WorkOrdersKit", dependencies: libraries, swiftSettings: strict),
        .executableTarget(
            name: "workorders",
            dependencies: ["WorkOrdersKit"] + libraries,
            swiftSettings: strict
        ),
        .testTarget(
            name: "WorkOrdersKitTests",
            dependencies: ["WorkOrdersKit", .product(name: "HummingbirdTesting", package: "hummingbird")]
                + libraries,
            swiftSettings: strict
        ),
    ]
)
