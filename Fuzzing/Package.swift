// swift-tools-version: 6.2
import PackageDescription

// A package of its own, since the fuzzer replaces `main` and instruments everything. See README.md.
let settings: [SwiftSetting] = [.unsafeFlags(["-sanitize=fuzzer", "-parse-as-library"])]
let linking: [LinkerSetting] = [.unsafeFlags(["-sanitize=fuzzer"])]

let package = Package(
    name: "fuzzing",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "loveseat", path: "..")],
    targets: ["FuzzJSON", "FuzzBLIP", "FuzzPassive"].map { name in
        .executableTarget(
            name: name,
            dependencies: [.product(name: "LoveseatTesting", package: "loveseat")],
            swiftSettings: settings,
            linkerSettings: linking
        )
    }
)
