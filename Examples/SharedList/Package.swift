// swift-tools-version: 6.2
import PackageDescription

/// Warnings are errors only where CI asks for it, so that a new compiler's warning never breaks a user.
let strict: [SwiftSetting] =
    [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
    ] + (Context.environment["LOVESEAT_STRICT"] == nil ? [] : [.treatAllWarnings(as: .error)])

let loveseat = Target.Dependency.product(name: "Loveseat", package: "loveseat")

let package = Package(
    name: "sharedlist",
    platforms: [.macOS(.v15), .iOS(.v18)],
    products: [
        .library(name: "SharedListViews", targets: ["SharedListViews"]),
        .executable(name: "sharedlist", targets: ["sharedlist"]),
    ],
    // An app of your own needs none of the package's traits: add `traits: []`.
    dependencies: [.package(name: "loveseat", path: "../..")],
    targets: [
        // Documents, the rule for conflicts, and a view model for each screen.
        .target(name: "SharedListKit", dependencies: [loveseat], swiftSettings: strict),
        // The screens in SwiftUI; empty where there is no SwiftUI.
        .target(name: "SharedListViews", dependencies: ["SharedListKit", loveseat], swiftSettings: strict),
        // The same screens on a terminal.
        .executableTarget(
            name: "sharedlist",
            dependencies: ["SharedListKit", loveseat],
            swiftSettings: strict
        ),
        .testTarget(
            name: "SharedListKitTests",
            dependencies: ["SharedListKit", loveseat],
            swiftSettings: strict
        ),
    ]
)
