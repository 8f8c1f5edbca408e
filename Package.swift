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

/// The packages of the libraries, and the traits without which an app need not fetch them.
let libraries: [String: (package: String, trait: String?)] = [
    "ArgumentParser": ("swift-argument-parser", "CommandLine"),
    "AsyncHTTPClient": ("async-http-client", "CouchDB"),
    "Crypto": ("swift-crypto", nil), "CryptoExtras": ("swift-crypto", nil),
    "GRDB": ("GRDB.swift", nil), "GRDBSQLite": ("GRDB.swift", nil),
    "HTTPTypes": ("swift-http-types", "CouchDB"), "HummingbirdCore": ("hummingbird", "CouchDB"),
    "Logging": ("swift-log", nil),
    "NIOSSL": ("swift-nio-ssl", nil),
    "SwiftASN1": ("swift-asn1", nil),
    "X509": ("swift-certificates", nil),
]

/// What a target depends on: our targets, C's, and libraries, by their names. Those of the NIO package all begin with "NIO".
func dependencies(_ names: String) -> [Target.Dependency] {
    names.split(whereSeparator: \.isWhitespace).map { name in
        let name = String(name)
        let library = libraries[name] ?? (name.hasPrefix("NIO") ? ("swift-nio", nil) : nil)
        guard let library else {
            return name == "LoveseatCouchDBTesting"
                ? .target(name: name, condition: .when(traits: ["CouchDB"])) : .target(name: name)
        }
        let condition = library.trait.map { TargetDependencyCondition.when(traits: [$0]) } ?? nil
        return .product(name: name, package: library.package, moduleAliases: nil, condition: condition)
    }
}

func library(
    _ name: String,
    _ names: String = "",
    path: String? = nil,
    resources: [Resource]? = nil,
    settings: [SwiftSetting] = strict
) -> Target {
    .target(
        name: name,
        dependencies: dependencies(names),
        path: path,
        resources: resources,
        swiftSettings: settings
    )
}

func program(_ name: String, _ names: String, path: String? = nil) -> Target {
    .executableTarget(name: name, dependencies: dependencies(names), path: path, swiftSettings: strict)
}

func tests(_ name: String, _ names: String) -> Target {
    .testTarget(name: name, dependencies: dependencies(names), swiftSettings: strict)
}

let package = Package(
    name: "loveseat",
    platforms: [.macOS(.v15), .iOS(.v18)],
    products: [
        .library(name: "Loveseat", targets: ["Loveseat"]),
        .library(name: "LoveseatCouchDB", targets: ["LoveseatCouchDB"]),
        .library(name: "LoveseatDiscovery", targets: ["LoveseatDiscovery"]),
        .library(name: "LoveseatWeb", targets: ["LoveseatWeb"]),
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
        library("LoveseatAssertions"),
        library("LoveseatModel", "LoveseatAssertions"),
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        library("LoveseatBLIP", "CZlib LoveseatAssertions"),
        library("LoveseatReplication", "LoveseatModel"),
        library(
            "LoveseatBLIPReplication",
            "LoveseatAssertions LoveseatModel LoveseatBLIP LoveseatReplication"
        ),

        // Regular expressions, words and collation.
        library("LoveseatText", "LoveseatAssertions"),

        library(
            "LoveseatCouchDBReplication",
            "LoveseatAssertions LoveseatModel LoveseatReplication LoveseatText"
        ),

        // Multicast DNS and service discovery, without sockets.
        library("LoveseatDiscoveryCore", "LoveseatAssertions LoveseatModel"),
        // Its sockets, and avahi-client, where it is installed.
        .target(name: "CDiscovery"),

        library("LoveseatQuery", "LoveseatAssertions LoveseatModel LoveseatText"),

        // ISA-L's deflate, where it is installed.
        .target(name: "CISAL"),
        // libedit, where it is installed.
        .target(name: "CLineEditor"),
        // The C library of the platform.
        library("LoveseatPlatform"),

        // Disk.
        library(
            "LoveseatStorage",
            """
            LoveseatAssertions LoveseatModel LoveseatPlatform LoveseatQuery LoveseatText GRDB GRDBSQLite
            Crypto
            """
        ),

        // API.
        library(
            "LoveseatCore",
            """
            CISAL CZlib LoveseatAssertions LoveseatModel LoveseatPlatform LoveseatBLIP LoveseatReplication
            LoveseatBLIPReplication LoveseatQuery LoveseatStorage LoveseatText Logging
            """
        ),

        // Network.
        library(
            "LoveseatIdentity",
            "LoveseatModel LoveseatPlatform Crypto CryptoExtras NIOSSL SwiftASN1 X509"
        ),
        library(
            "LoveseatNetwork",
            """
            LoveseatAssertions LoveseatModel LoveseatPlatform LoveseatReplication LoveseatBLIPReplication
            LoveseatCore LoveseatIdentity Crypto CryptoExtras NIOConcurrencyHelpers NIOCore NIOPosix
            NIOHTTP1 NIOTLS NIOSSL NIOWebSocket Logging
            """
        ),

        // CouchDB's wire. Hummingbird's writers stay outside of actors.
        library(
            "LoveseatCouchDB",
            """
            LoveseatAssertions LoveseatModel LoveseatReplication LoveseatStorage LoveseatCore
            LoveseatIdentity LoveseatNetwork LoveseatCouchDBReplication Crypto Logging
            NIOConcurrencyHelpers NIOCore NIOSSL NIOHTTP1 AsyncHTTPClient HTTPTypes
            HummingbirdCore
            """,
            settings: common
        ),

        // Finding peers.
        library(
            "LoveseatDiscovery",
            """
            LoveseatAssertions CDiscovery LoveseatModel LoveseatPlatform LoveseatReplication
            LoveseatBLIPReplication LoveseatDiscoveryCore LoveseatCore LoveseatIdentity LoveseatNetwork
            Logging
            """
        ),

        // Face.
        library("Loveseat", "LoveseatModel LoveseatCore LoveseatIdentity LoveseatNetwork"),

        // Tools.
        library(
            "LoveseatTesting",
            """
            LoveseatAssertions LoveseatModel LoveseatBLIP LoveseatReplication LoveseatBLIPReplication
            LoveseatQuery LoveseatStorage LoveseatCore LoveseatIdentity LoveseatNetwork
            LoveseatDiscoveryCore Crypto NIOCore NIOEmbedded NIOHTTP1 NIOPosix NIOWebSocket
            """
        ),
        // Apart, so that who tests without CouchDB's wire needs no Hummingbird.
        library(
            "LoveseatCouchDBTesting",
            """
            LoveseatAssertions LoveseatModel LoveseatPlatform LoveseatReplication LoveseatStorage LoveseatCore
            LoveseatNetwork LoveseatCouchDB LoveseatTesting AsyncHTTPClient HTTPTypes HummingbirdCore NIOCore
            NIOEmbedded NIOHTTP1
            """,
            settings: common
        ),
        .systemLibrary(name: "CQREncode", pkgConfig: "libqrencode", providers: [.apt(["libqrencode-dev"])]),
        // A local web server for browsers that have its token. Hummingbird's writers stay outside of actors.
        library(
            "LoveseatWeb",
            """
            LoveseatModel LoveseatIdentity LoveseatNetwork Logging NIOCore NIOPosix HTTPTypes HummingbirdCore
            """,
            settings: common
        ),
        // The inspector: a local web page, its JSON API, and what `loveseat top` shows. Hummingbird's writers stay outside of actors.
        library(
            "LoveseatInspector",
            """
            LoveseatModel LoveseatCore LoveseatIdentity LoveseatNetwork LoveseatDiscovery LoveseatWeb NIOCore
            HTTPTypes HummingbirdCore
            """,
            resources: [.embedInCode("Resources")],
            settings: common
        ),
        program(
            "LoveseatCLI",
            """
            LoveseatAssertions CLineEditor CQREncode LoveseatQuery Loveseat LoveseatCouchDB
            LoveseatDiscovery LoveseatInspector ArgumentParser Logging
            """
        ),
        program("Simulate", "LoveseatModel LoveseatTesting LoveseatCouchDBTesting ArgumentParser"),

        // Tests.
        tests("LoveseatModelTests", "LoveseatAssertions LoveseatModel LoveseatTesting Crypto"),
        tests("LoveseatTextTests", "LoveseatText"),
        tests(
            "LoveseatQueryTests",
            """
            LoveseatModel LoveseatPlatform LoveseatQuery LoveseatStorage LoveseatTesting LoveseatText
            GRDBSQLite
            """
        ),
        tests(
            "LoveseatCouchDBReplicationTests",
            "LoveseatModel LoveseatReplication LoveseatCouchDBReplication"
        ),
        tests(
            "LoveseatCouchDBTests",
            """
            CZlib LoveseatModel LoveseatPlatform LoveseatStorage LoveseatCore LoveseatIdentity
            LoveseatNetwork LoveseatCouchDBReplication LoveseatCouchDB LoveseatTesting
            LoveseatCouchDBTesting Crypto AsyncHTTPClient Logging NIOCore NIOHTTP1 NIOPosix NIOSSL
            """
        ),
        tests("LoveseatDiscoveryCoreTests", "LoveseatDiscoveryCore LoveseatModel"),
        tests(
            "LoveseatDiscoveryTests",
            """
            LoveseatModel LoveseatReplication LoveseatDiscoveryCore LoveseatDiscovery LoveseatCore
            LoveseatNetwork LoveseatTesting
            """
        ),
        tests("LoveseatBLIPTests", "CZlib LoveseatModel LoveseatBLIP LoveseatTesting"),
        tests(
            "LoveseatReplicationTests",
            """
            LoveseatModel LoveseatBLIP LoveseatReplication LoveseatBLIPReplication LoveseatStorage
            LoveseatCore LoveseatNetwork LoveseatTesting NIOCore NIOEmbedded NIOHTTP1
            """
        ),
        tests(
            "ReplayTests",
            """
            LoveseatModel LoveseatBLIP LoveseatReplication LoveseatBLIPReplication LoveseatStorage
            LoveseatCore LoveseatTesting
            """
        ),
        tests(
            "LoveseatStorageTests",
            "LoveseatModel LoveseatText LoveseatStorage LoveseatTesting StoreWriter GRDB"
        ),
        tests(
            "LoveseatCoreTests",
            """
            LoveseatModel LoveseatStorage LoveseatBLIP LoveseatReplication LoveseatBLIPReplication
            LoveseatQuery LoveseatCore LoveseatTesting GRDB
            """
        ),
        tests(
            "LoveseatIdentityTests",
            "LoveseatModel LoveseatIdentity LoveseatTesting Crypto SwiftASN1 X509"
        ),
        tests(
            "LoveseatNetworkTests",
            """
            LoveseatModel LoveseatPlatform LoveseatStorage LoveseatReplication LoveseatBLIPReplication
            LoveseatCore LoveseatIdentity LoveseatNetwork LoveseatTesting Crypto NIOConcurrencyHelpers
            NIOCore NIOPosix NIOEmbedded NIOHTTP1 NIOSSL NIOWebSocket
            """
        ),
        tests(
            "LoveseatInspectorTests",
            """
            LoveseatModel LoveseatPlatform LoveseatReplication LoveseatStorage LoveseatCore LoveseatNetwork
            LoveseatDiscovery LoveseatInspector LoveseatTesting LoveseatCouchDBTesting LoveseatWeb
            HTTPTypes
            """
        ),
        tests(
            "LoveseatCLITests",
            """
            LoveseatPlatform LoveseatModel LoveseatStorage LoveseatBLIP LoveseatCore LoveseatCLI
            LoveseatNetwork LoveseatTesting GRDB NIOConcurrencyHelpers NIOCore NIOPosix
            """
        ),
        tests("ConvergenceTests", "LoveseatTesting"),
        // Queries against raw SQLite. Here and not among the other benchmarks, so that each build of the tests compiles it.
        library("CRawQueries", "GRDBSQLite", path: "Benchmarks/CRawQueries", settings: []),
        program("QueryRatios", "CRawQueries Loveseat ArgumentParser", path: "Benchmarks/QueryRatios"),
        // Gets, saves and inserts for `turns.py`.
        program("ApiSpeed", "Loveseat", path: "Benchmarks/ApiSpeed"),
        // A process that the crash test kills.
        program("StoreWriter", "LoveseatModel LoveseatStorage", path: "Tests/StoreWriter"),
        // What the Autobahn test-suite speaks with.
        program(
            "WebSocketEcho",
            """
            LoveseatModel LoveseatReplication LoveseatBLIPReplication LoveseatCore LoveseatNetwork NIOCore
            NIOPosix
            """,
            path: "Tests/WebSocketEcho"
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
                || ["LoveseatDiscovery", "LoveseatInspector", "LoveseatWeb"].contains(target.name)
        }
    }
    package.products.removeAll { $0.name != "Loveseat" && $0.name != "LoveseatTesting" }
}
