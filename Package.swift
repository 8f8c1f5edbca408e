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
            let isOptional = name == "LoveseatCouchDBTesting"
            return .target(name: name, condition: isOptional ? .when(traits: ["CouchDB"]) : nil)
        }
        let condition = library.trait.map { TargetDependencyCondition.when(traits: [$0]) } ?? nil
        return .product(name: name, package: library.package, moduleAliases: nil, condition: condition)
    }
}

func library(_ name: String, _ names: String = "") -> Target {
    // Hummingbird's writers and NIO's readers stay outside of actors.
    let settings = names.contains("Hummingbird") || name == "LoveseatWeb" ? common : strict
    return .target(name: name, dependencies: dependencies(names), swiftSettings: settings)
}

func program(_ name: String, _ names: String, path: String? = nil) -> Target {
    .executableTarget(name: name, dependencies: dependencies(names), path: path, swiftSettings: strict)
}

func tests(_ name: String, _ names: String) -> Target {
    .testTarget(name: name, dependencies: dependencies("\(names) LoveseatTesting"), swiftSettings: strict)
}

// Layers that many targets stand on.
let pure = "LoveseatAssertions LoveseatModel"
let base = "\(pure) LoveseatPlatform"
let wire = "LoveseatReplication LoveseatBLIPReplication"
let core = "\(base) \(wire) LoveseatCore"
// Of the layers below, for those that look behind the API.
let inner = "LoveseatBLIP LoveseatQuery LoveseatText LoveseatStorage"
let network = "\(core) LoveseatIdentity LoveseatNetwork"
let sockets = "NIOConcurrencyHelpers NIOCore NIOEmbedded NIOHTTP1 NIOPosix NIOTLS NIOSSL NIOWebSocket"
let http = "AsyncHTTPClient HTTPTypes HummingbirdCore"

let package = Package(
    name: "loveseat",
    platforms: [.macOS(.v15), .iOS(.v18)],
    products: [
        .library(name: "Loveseat", targets: ["Loveseat"]),
        .library(name: "CouchbaseLiteSwift", targets: ["CouchbaseLiteSwift"]),
        .library(name: "LoveseatCouchDB", targets: ["LoveseatCouchDB"]),
        .library(name: "LoveseatDiscovery", targets: ["LoveseatDiscovery"]),
        .library(name: "LoveseatWeb", targets: ["LoveseatWeb"]),
        .library(name: "LoveseatTesting", targets: ["LoveseatTesting"]),
        .library(name: "LoveseatCouchDBTesting", targets: ["LoveseatCouchDBTesting"]),
        .executable(name: "loveseat", targets: ["LoveseatCLI"]),
        .executable(name: "simulate", targets: ["Simulate"]),
    ],
    traits: [
        .trait(name: "CommandLine", description: "The programs loveseat and simulate, with ArgumentParser."),
        .trait(name: "CouchDB", description: "CouchDB's wire, with Hummingbird and AsyncHTTPClient."),
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
        // C: zlib; libqrencode; ISA-L's deflate, libedit and avahi-client, where they are installed.
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(name: "CQREncode", pkgConfig: "libqrencode", providers: [.apt(["libqrencode-dev"])]),
        .target(name: "CISAL"), .target(name: "CLineEditor"), .target(name: "CDiscovery"),
        .target(name: "CFileBirth"),

        // Pure: no Foundation, no clock, no randomness, no input or output of their own.
        library("LoveseatAssertions"),
        library("LoveseatModel", "LoveseatAssertions"),
        library("LoveseatText", "LoveseatAssertions"),
        library("LoveseatQuery", "\(pure) LoveseatText"),
        library("LoveseatReplication", "LoveseatModel"),
        library("LoveseatBLIP", "CZlib LoveseatAssertions"),
        library("LoveseatBLIPReplication", "\(pure) LoveseatBLIP LoveseatReplication"),
        library("LoveseatCouchDBReplication", "\(pure) LoveseatReplication LoveseatText"),
        library("LoveseatDiscoveryCore", pure),

        // The C library of the platform; disk; API; identities; network.
        library("LoveseatPlatform"),
        library("LoveseatStorage", "\(base) CFileBirth LoveseatQuery LoveseatText GRDB GRDBSQLite Crypto"),
        library("LoveseatCore", "\(base) \(wire) \(inner) CISAL CZlib Logging"),
        library("LoveseatIdentity", "\(base) Crypto CryptoExtras NIOSSL SwiftASN1 X509"),
        library("LoveseatNetwork", "\(core) LoveseatIdentity Crypto CryptoExtras \(sockets) Logging"),

        // CouchDB's wire, and local web pages.
        library(
            "LoveseatCouchDB",
            "\(network) LoveseatStorage LoveseatCouchDBReplication Crypto Logging \(sockets) \(http)"
        ),
        library("LoveseatWeb", "\(network) \(sockets)"),
        .target(
            name: "LoveseatInspector",
            dependencies: dependencies("\(network) LoveseatDiscovery LoveseatWeb NIOCore"),
            resources: [.embedInCode("Resources")],
            swiftSettings: strict
        ),

        // Finding peers; the face.
        library("LoveseatDiscovery", "\(network) CDiscovery LoveseatDiscoveryCore Logging"),
        library("Loveseat", "LoveseatModel LoveseatCore LoveseatIdentity LoveseatNetwork"),
        // Couchbase Lite's names over it, for apps that are written for those.
        library("CouchbaseLiteSwift", "\(network) Loveseat LoveseatStorage Logging"),

        // Tools. Who tests without CouchDB's wire needs no Hummingbird.
        library("LoveseatTesting", "\(inner) \(network) LoveseatDiscoveryCore Crypto \(sockets)"),
        library(
            "LoveseatCouchDBTesting",
            "\(inner) \(network) LoveseatCouchDBReplication LoveseatCouchDB LoveseatTesting Crypto \(sockets) \(http)"
        ),
        program(
            "LoveseatCLI",
            "\(network) CLineEditor CQREncode LoveseatText LoveseatQuery Loveseat LoveseatCouchDB LoveseatDiscovery LoveseatInspector ArgumentParser Logging"
        ),
        program("Simulate", "LoveseatModel LoveseatTesting LoveseatCouchDBTesting ArgumentParser"),

        // Tests.
        tests("LoveseatModelTests", "\(base) Crypto"),
        tests("LoveseatTextTests", "LoveseatText"),
        tests("LoveseatQueryTests", "\(inner) \(core) GRDBSQLite"),
        tests("LoveseatBLIPTests", "\(base) CZlib LoveseatBLIP"),
        tests("LoveseatCouchDBReplicationTests", "\(base) LoveseatReplication LoveseatCouchDBReplication"),
        tests("LoveseatDiscoveryCoreTests", "\(base) LoveseatDiscoveryCore"),
        tests("LoveseatReplicationTests", "\(inner) \(network) \(sockets)"),
        tests("ReplayTests", "\(inner) \(core)"),
        tests("LoveseatStorageTests", "\(base) LoveseatQuery LoveseatText LoveseatStorage StoreWriter GRDB"),
        tests("LoveseatCoreTests", "\(inner) \(core) GRDB"),
        tests("LoveseatIdentityTests", "\(base) LoveseatIdentity Crypto SwiftASN1 X509"),
        tests("LoveseatNetworkTests", "\(inner) \(network) Crypto \(sockets)"),
        tests("LoveseatDiscoveryTests", "\(network) LoveseatDiscoveryCore LoveseatDiscovery"),
        tests(
            "LoveseatCouchDBTests",
            "\(inner) \(network) LoveseatCouchDBReplication LoveseatCouchDB LoveseatCouchDBTesting CZlib \(sockets) Crypto AsyncHTTPClient Logging"
        ),
        tests(
            "LoveseatInspectorTests",
            "\(inner) \(network) LoveseatDiscovery LoveseatInspector LoveseatCouchDBTesting LoveseatWeb"
        ),
        tests("CouchbaseLiteSwiftTests", "CouchbaseLiteSwift"),
        tests("LoveseatCLITests", "\(inner) \(network) LoveseatCLI GRDB \(sockets)"),
        tests("ConvergenceTests", ""),
        // A process that the crash test kills, and one that the Autobahn test-suite speaks with.
        program("StoreWriter", "LoveseatModel LoveseatStorage", path: "Tests/StoreWriter"),
        program("WebSocketEcho", "\(network) NIOCore NIOPosix", path: "Tests/WebSocketEcho"),
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
                || ["CouchbaseLiteSwift", "LoveseatDiscovery", "LoveseatInspector", "LoveseatWeb"].contains(
                    target.name
                )
        }
    }
    package.products.removeAll { $0.name != "Loveseat" && $0.name != "LoveseatTesting" }
}
