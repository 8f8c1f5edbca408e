import Foundation
import Loveseat

/// Options that take one value, although a user may think that they can be repeated. The parser takes the last value, and says nothing.
enum SingleOptions {
    /// The options, each with what to do instead.
    private static let advice = [
        "--user":
            "for several users of `serve`, use --paired or --client-ca, and --access with the rights of each",
        "--access": "write the rights of all peers to one file",
        "--collections": "separate the collections by commas",
        "--doc-ids": "separate the IDs by commas",
        "--channels": "separate the channels by commas",
        "--client-ca": "a PEM file can have several authorities",
        "--ca": "a PEM file can have several authorities",
        "--pin": "pin one certificate, or trust the authority of all with --ca",
        "--interface": "leave it out to listen on all",
    ]

    /// - Throws: `invalidParameter` if one of them is given twice.
    static func refuseRepeated(in arguments: some Sequence<String>) throws {
        var given: Swift.Set<ExactText> = []
        for argument in arguments.prefix(while: { $0 != "--" }) {
            let name = String(argument.prefix { $0 != "=" })
            guard let advice = advice[name], !given.insert(ExactText(name)).inserted else { continue }
            throw LoveseatError(.invalidParameter, "\(name) can be given only once: \(advice)")
        }
    }
}
