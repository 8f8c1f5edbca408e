// swift-tools-version: 6.2
import PackageDescription

// A package of its own, since everything in it is built for the fuzzer. See README.md for the flags.
let package = Package(
    name: "fuzzing",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "loveseat", path: "..")],
    targets: [
        .executableTarget(
            name: "Fuzz",
            dependencies: [
                .product(name: "LoveseatTesting", package: "loveseat"),
                .product(name: "LoveseatCouchDBTesting", package: "loveseat"),
            ]
        )
    ]
)
