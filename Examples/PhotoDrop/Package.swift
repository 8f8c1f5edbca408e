// swift-tools-version: 6.2
import PackageDescription

/// Warnings are errors only where CI asks for it, so that a new compiler's warning never breaks a user.
let strict: [SwiftSetting] =
    [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
    ] + (Context.environment["LOVESEAT_STRICT"] == nil ? [] : [.treatAllWarnings(as: .error)])

let package = Package(
    name: "photodrop",
    platforms: [.macOS(.v15)],
    products: [.executable(name: "photodrop", targets: ["photodrop"])],
    dependencies: [
        .package(name: "loveseat", path: "../.."),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
    ],
    targets: [
        .systemLibrary(name: "CQRCode", pkgConfig: "libqrencode", providers: [.apt(["libqrencode-dev"])]),
        // zlib, for the colour profiles of PNG.
        .systemLibrary(name: "CDeflate", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        // Codes, documents, names, image headers: no files, no network, no clock.
        .target(
            name: "PhotoDropCore",
            dependencies: [
                "CDeflate", "CQRCode",
                .product(name: "Loveseat", package: "loveseat"),
            ],
            swiftSettings: strict
        ),
        // Sessions, the folder of received photos, and the web pages.
        .target(
            name: "PhotoDropKit",
            dependencies: [
                "PhotoDropCore",
                .product(name: "Loveseat", package: "loveseat"),
                .product(name: "LoveseatCouchDB", package: "loveseat"),
                .product(name: "LoveseatDiscovery", package: "loveseat"),
                .product(name: "LoveseatWeb", package: "loveseat"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOTLS", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ],
            resources: [.embedInCode("Web/Resources")],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "photodrop",
            dependencies: [
                "PhotoDropCore", "PhotoDropKit",
                .product(name: "Loveseat", package: "loveseat"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "PhotoDropCoreTests",
            dependencies: ["PhotoDropCore", .product(name: "Loveseat", package: "loveseat")],
            swiftSettings: strict
        ),
        .testTarget(
            name: "PhotoDropKitTests",
            dependencies: [
                "PhotoDropCore", "PhotoDropKit", .product(name: "Loveseat", package: "loveseat"),
            ],
            swiftSettings: strict
        ),
    ]
)
