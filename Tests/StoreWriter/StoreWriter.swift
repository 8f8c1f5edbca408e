import Foundation
import LoveseatModel
import LoveseatStorage

/// Saves documents until it is killed, and prints the number of each save after it returned.
///
/// Usage: `StoreWriter FOLDER FIRST`: the first number to save.
@main
struct StoreWriter {
    static func main() throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 3, let first = Int(arguments[2]) else {
            FileHandle.standardError.write(Data("usage: StoreWriter FOLDER FIRST\n".utf8))
            exit(64)
        }
        let store = try DocumentStore.open(folder: arguments[1])
        guard let collection = store.collection(.default) else { exit(70) }
        var number = first
        while true {
            let body = JSONText(canonical: [
                "n": JSONValue(number), "pad": .string(String(repeating: "x", count: number % 3_000)),
            ])
            try store.write { transaction in
                // A new document, and one that everybody edits, in one transaction.
                for id in ["doc\(number)", "shared\(number % 10)"] {
                    _ = try transaction.save(
                        id,
                        in: collection,
                        body: body,
                        isDeleted: false,
                        condition: .lastWriteWins
                    )
                }
            }
            FileHandle.standardOutput.write(Data("\(number)\n".utf8))
            number += 1
        }
    }
}
