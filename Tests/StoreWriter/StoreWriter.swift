import Foundation
import LoveseatModel
import LoveseatStorage

/// Saves documents until it is killed, and prints the number of each save after it returned.
///
/// Usage: `StoreWriter FOLDER FIRST [blobs|versions]`: the first number to save. With `blobs`, each document has a blob, and compactions run beside the
/// saves. With `versions`, each save makes a version.
@main
struct StoreWriter {
    static func main() throws {
        let arguments = CommandLine.arguments
        guard (3...4).contains(arguments.count), let first = Int(arguments[2]) else {
            FileHandle.standardError.write(Data("usage: StoreWriter FOLDER FIRST [blobs|versions]\n".utf8))
            exit(64)
        }
        let store = try DocumentStore.open(folder: arguments[1])
        guard let collection = store.collection(.default) else { exit(70) }
        let hasBlobs = arguments.last == "blobs"
        if arguments.last == "versions" { try store.beginVersions() }
        if hasBlobs { Thread.detachNewThread { while (try? store.compact()) != nil {} } }
        var number = first
        while true {
            var value: JSONValue = [
                "n": JSONValue(number), "pad": .string(String(repeating: "x", count: number % 3_000)),
            ]
            if hasBlobs {
                let writer = try store.blobs.writer()
                try writer.write(Array("content \(number)".utf8))
                let (digest, length) = try writer.finish()
                value["blob"] = BlobReference(digest: digest, length: length, contentType: nil).json
            }
            let body = JSONText(canonical: value)
            do {
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
            } catch LoveseatError.Code.notFound where hasBlobs {
                // A compaction began between the blob and the document, and was faster.
                continue
            }
            FileHandle.standardOutput.write(Data("\(number)\n".utf8))
            number += 1
        }
    }
}
