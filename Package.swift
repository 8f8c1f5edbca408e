// swift-tools-version: 6.2
import PackageDescription

let environment = Context.environment

/// Warnings are errors only where CI asks for it, so that a new compiler's warning never breaks a user.
let common: [SwiftSetting] =
    [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
    ] + (environment["LOVESEAT_STRICT"] == nil ? [] : [.treatAllWarnings(as: .error)])
    // What cannot be ends the program: for tests, the simulator and fuzzers.
    + (environment["LOVESEAT_CHECKED"] == nil ? [] : [.define("LOVESEAT_CHECKED")])

let strict = common + [.enableUpcomingFeature("NonisolatedNonsendingByDefault")]

/// Only programs parse arguments: an app need not fetch the library.
let arguments = Target.Dependency.product(
    name: "ArgumentParser",
    package: "swift-argument-parser",
    condition: .when(traits: ["CommandLine"])
)

/// Only with CouchDB's wire: an app that is built without it need not fetch the library.
let hummingbird: [Target.Dependency] = [
    .product(name: "HTTPTypes", package: "swift-http-types", condition: .when(traits: ["CouchDB"])),
    .product(name: "HummingbirdCore", package: "hummingbird", condition: .when(traits: ["CouchDB"])),
]

let package = Package(
    name: "loveseat",
    platforms: [.macOS(.v15), .iOS(.v18)],
    products: [
        .library(name: "Loveseat", targets: ["Loveseat"]),
        .library(name: "LoveseatCouchDB", targets: ["LoveseatCouchDB"]),
        .library(name: "LoveseatDiscovery", targets: ["LoveseatDiscovery"]),
        .library(name: "LoveseatTesting", targets: ["LoveseatTesting"]),
        .library(name: "LoveseatCouchDBTesting", targets: ["LoveseatCouchDBTesting"]),
        .executable(name: "loveseat", targets: ["LoveseatCLI"]),
        .executable(name: "simulate", targets: ["Simulate"]),
    ],
    traits: [
        .trait(
            name: "CommandLine",
            description:
                "The programs loveseat and simulate. An app that is built without it needs no ArgumentParser."
        ),
        .trait(
            name: "CouchDB",
            description:
                "CouchDB's wire. An app that is built without it needs neither Hummingbird nor AsyncHTTPClient."
        ),
        .default(enabledTraits: ["CommandLine", "CouchDB"]),
    ],
    dependencies: [
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
        .package(url: "https://github.com/apple/swift-certificates", from: "1.21.1"),
        .package(url: "https://github.com/apple/swift-asn1", from: "1.7.4"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.6.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.26.0"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.33.0"),
    ],
    targets: [
        // Pure: no Foundation, no clock, no randomness, no input or output of their own.
        .target(name: "LoveseatAssertions", swiftSettings: strict),
        .target(name: "LoveseatModel", dependencies: ["LoveseatAssertions"], swiftSettings: strict),
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .target(
            name: "LoveseatBLIP",
            dependencies: ["CZlib", "LoveseatAssertions"],
            swiftSettings: strict
        ),
        .target(name: "LoveseatReplication", dependencies: ["LoveseatModel"], swiftSettings: strict),
        .target(
            name: "LoveseatBLIPReplication",
            dependencies: ["LoveseatAssertions", "LoveseatModel", "LoveseatBLIP", "LoveseatReplication"],
            swiftSettings: strict
        ),

        .target(
            name: "LoveseatCouchDBReplication",
            dependencies: ["LoveseatModel", "LoveseatReplication"],
            swiftSettings: strict
        ),

        // Multicast DNS and service discovery, without sockets.
        .target(name: "LoveseatDiscoveryCore", dependencies: ["LoveseatModel"], swiftSettings: strict),
        // Its sockets, and avahi-client, where it is installed.
        .target(name: "CDiscovery"),

        .target(name: "LoveseatQuery", dependencies: ["LoveseatModel"], swiftSettings: strict),

        // ISA-L's deflate, where it is installed.
        .target(name: "CISAL"),
        // libedit, where it is installed.
        .target(name: "CLineEditor"),
        // The C library of the platform.
        .target(name: "LoveseatPlatform", swiftSettings: strict),

        // Disk.
        .target(
            name: "LoveseatStorage",
            dependencies: [
                "LoveseatModel", "LoveseatPlatform", "LoveseatQuery",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
                .product(name: "Crypto", package: "swift-crypto"),
            ],
            swiftSettings: strict
        ),

        // API.
        .target(
            name: "LoveseatCore",
            dependencies: [
                "CISAL", "CZlib", "LoveseatAssertions", "LoveseatModel", "LoveseatPlatform", "LoveseatBLIP",
                "LoveseatReplication",
                "LoveseatBLIPReplication", "LoveseatQuery", "LoveseatStorage",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        ),

        // Network.
        .target(
            name: "LoveseatIdentity",
            dependencies: [
                "LoveseatModel", "LoveseatPlatform",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "CryptoExtras", package: "swift-crypto"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "SwiftASN1", package: "swift-asn1"),
                .product(name: "X509", package: "swift-certificates"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "LoveseatNetwork",
            dependencies: [
                "LoveseatModel", "LoveseatPlatform", "LoveseatReplication", "LoveseatBLIPReplication",
                "LoveseatCore",
                "LoveseatIdentity",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "CryptoExtras", package: "swift-crypto"),
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOTLS", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "NIOWebSocket", package: "swift-nio"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        ),

        // CouchDB's wire.
        .target(
            name: "LoveseatCouchDB",
            dependencies: [
                "LoveseatModel", "LoveseatReplication", "LoveseatStorage", "LoveseatCore",
                "LoveseatIdentity", "LoveseatNetwork", "LoveseatCouchDBReplication",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(
                    name: "AsyncHTTPClient",
                    package: "async-http-client",
                    condition: .when(traits: ["CouchDB"])
                ),
            ] + hummingbird,
            // Hummingbird's writers stay outside of actors.
            swiftSettings: common
        ),

        // Finding peers.
        .target(
            name: "LoveseatDiscovery",
            dependencies: [
                "CDiscovery", "LoveseatModel", "LoveseatPlatform", "LoveseatReplication",
                "LoveseatBLIPReplication", "LoveseatDiscoveryCore", "LoveseatCore", "LoveseatIdentity",
                "LoveseatNetwork",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        ),

        // Face.
        .target(
            name: "Loveseat",
            dependencies: ["LoveseatModel", "LoveseatCore", "LoveseatIdentity", "LoveseatNetwork"],
            swiftSettings: strict
        ),

        // Tools.
        .target(
            name: "LoveseatTesting",
            dependencies: [
                "LoveseatModel", "LoveseatBLIP", "LoveseatReplication", "LoveseatBLIPReplication",
                "LoveseatQuery", "LoveseatStorage", "LoveseatCore",
                "LoveseatIdentity", "LoveseatNetwork", "LoveseatDiscoveryCore",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOWebSocket", package: "swift-nio"),
            ],
            swiftSettings: strict
        ),
        // Apart, so that who tests without CouchDB's wire needs no Hummingbird.
        .target(
            name: "LoveseatCouchDBTesting",
            dependencies: [
                "LoveseatModel", "LoveseatPlatform", "LoveseatCore", "LoveseatNetwork", "LoveseatCouchDB",
                "LoveseatTesting",
            ],
            swiftSettings: strict
        ),
        .systemLibrary(name: "CQREncode", pkgConfig: "libqrencode", providers: [.apt(["libqrencode-dev"])]),
        // The inspector: a local web page, its JSON API, and what `loveseat top` shows.
        .target(
            name: "LoveseatInspector",
            dependencies: [
                "LoveseatModel", "LoveseatCore", "LoveseatIdentity", "LoveseatNetwork", "LoveseatDiscovery",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ] + hummingbird,
            resources: [.embedInCode("Resources")],
            // Hummingbird's writers stay outside of actors.
            swiftSettings: common
        ),
        .executableTarget(
            name: "LoveseatCLI",
            dependencies: [
                "CLineEditor", "CQREncode", "LoveseatQuery", "Loveseat", "LoveseatCouchDB",
                "LoveseatDiscovery", "LoveseatInspector", arguments,
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "Simulate",
            dependencies: [
                "LoveseatModel", "LoveseatTesting",
                arguments,
            ],
            swiftSettings: strict
        ),

        // Tests.
        .testTarget(
            name: "LoveseatModelTests",
            dependencies: [
                "LoveseatAssertions", "LoveseatModel", "LoveseatTesting",
                .product(name: "Crypto", package: "swift-crypto"),
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LoveseatQueryTests",
            dependencies: [
                "LoveseatModel", "LoveseatPlatform", "LoveseatQuery", "LoveseatStorage", "LoveseatTesting",
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LoveseatCouchDBReplicationTests",
            dependencies: ["LoveseatModel", "LoveseatReplication", "LoveseatCouchDBReplication"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LoveseatCouchDBTests",
            dependencies: [
                "CZlib", "LoveseatModel", "LoveseatPlatform", "LoveseatStorage", "LoveseatCore",
                "LoveseatIdentity", "LoveseatNetwork",
                "LoveseatCouchDBReplication", "LoveseatCouchDB", "LoveseatTesting", "LoveseatCouchDBTesting",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(
                    name: "AsyncHTTPClient",
                    package: "async-http-client",
                    condition: .when(traits: ["CouchDB"])
                ),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LoveseatDiscoveryCoreTests",
            dependencies: ["LoveseatDiscoveryCore", "LoveseatModel"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LoveseatDiscoveryTests",
            dependencies: [
                "LoveseatModel", "LoveseatReplication", "LoveseatDiscoveryCore", "LoveseatDiscovery",
                "LoveseatCore", "LoveseatNetwork", "LoveseatTesting",
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LoveseatBLIPTests",
            dependencies: ["CZlib", "LoveseatModel", "LoveseatBLIP", "LoveseatTesting"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LoveseatReplicationTests",
            dependencies: [
                "LoveseatModel", "LoveseatBLIP", "LoveseatReplication", "LoveseatBLIPReplication",
                "LoveseatStorage", "LoveseatCore", "LoveseatNetwork", "LoveseatTesting",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "ReplayTests",
            dependencies: [
                "LoveseatModel", "LoveseatBLIP", "LoveseatReplication", "LoveseatBLIPReplication",
                "LoveseatStorage", "LoveseatCore",
                "LoveseatTesting",
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LoveseatStorageTests",
            dependencies: [
                "LoveseatModel", "LoveseatStorage", "LoveseatTesting", "StoreWriter",
                .product(name: "GRDB", package: "GRDB.swift"),
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LoveseatCoreTests",
            dependencies: [
                "LoveseatModel", "LoveseatStorage", "LoveseatBLIP", "LoveseatReplication",
                "LoveseatBLIPReplication", "LoveseatQuery", "LoveseatCore", "LoveseatTesting",
                .product(name: "GRDB", package: "GRDB.swift"),
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LoveseatIdentityTests",
            dependencies: ["LoveseatModel", "LoveseatIdentity", "LoveseatTesting"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LoveseatNetworkTests",
            dependencies: [
                "LoveseatModel", "LoveseatPlatform", "LoveseatStorage", "LoveseatReplication",
                "LoveseatBLIPReplication",
                "LoveseatCore",
                "LoveseatIdentity", "LoveseatNetwork",
                "LoveseatTesting",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "NIOWebSocket", package: "swift-nio"),
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LoveseatInspectorTests",
            dependencies: [
                "LoveseatModel", "LoveseatPlatform", "LoveseatReplication", "LoveseatStorage", "LoveseatCore",
                "LoveseatNetwork", "LoveseatDiscovery", "LoveseatInspector", "LoveseatTesting",
                "LoveseatCouchDBTesting",
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LoveseatCLITests",
            dependencies: [
                "LoveseatPlatform", "LoveseatModel", "LoveseatStorage", "LoveseatBLIP", "LoveseatCore",
                "LoveseatCLI",
                "LoveseatNetwork", "LoveseatTesting",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "ConvergenceTests",
            dependencies: ["LoveseatTesting"],
            swiftSettings: strict
        ),
        // Queries against raw SQLite. Here and not among the other benchmarks, so that each build of the tests compiles it.
        .target(
            name: "CRawQueries",
            dependencies: [.product(name: "GRDBSQLite", package: "GRDB.swift")],
            path: "Benchmarks/CRawQueries"
        ),
        .executableTarget(
            name: "QueryRatios",
            dependencies: ["CRawQueries", "Loveseat", arguments],
            path: "Benchmarks/QueryRatios",
            swiftSettings: strict
        ),
        // Gets, saves and inserts for `turns.py`.
        .executableTarget(
            name: "ApiSpeed",
            dependencies: ["Loveseat"],
            path: "Benchmarks/ApiSpeed",
            swiftSettings: strict
        ),
        // A process that the crash test kills.
        .executableTarget(
            name: "StoreWriter",
            dependencies: ["LoveseatModel", "LoveseatStorage"],
            path: "Tests/StoreWriter",
            swiftSettings: strict
        ),
        // What the Autobahn test-suite speaks with.
        .executableTarget(
            name: "WebSocketEcho",
            dependencies: [
                "LoveseatModel", "LoveseatReplication", "LoveseatBLIPReplication", "LoveseatCore",
                "LoveseatNetwork",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            path: "Tests/WebSocketEcho",
            swiftSettings: strict
        ),
    ]
)

// `scripts/thread-sanitizer.sh` compiles only what the tests that it runs need.
if environment["LOVESEAT_SANITIZED"] != nil {
    let tests = [
        "LoveseatCoreTests", "LoveseatStorageTests", "LoveseatReplicationTests", "LoveseatNetworkTests",
    ]
    package.targets.removeAll { target in
        switch target.type {
        case .test: !tests.contains(target.name)
        case .executable: target.name != "StoreWriter"
        default:
            target.name.hasPrefix("LoveseatCouchDB")
                || ["LoveseatDiscovery", "LoveseatInspector"].contains(target.name)
        }
    }
    package.products.removeAll { $0.name != "Loveseat" && $0.name != "LoveseatTesting" }
}
