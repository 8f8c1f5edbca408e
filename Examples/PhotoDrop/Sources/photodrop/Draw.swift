import ArgumentParser
import Foundation
import PhotoDropCore
import PhotoDropKit

struct Draw: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Draw pictures, to try PhotoDrop with.",
        discussion: "Writes PNG files named picture-1.png and so on. Files that exist are not overwritten."
    )

    @Argument(help: "The folder to write to. It is created if it does not exist.")
    var folder: String
    @Option(help: "How many pictures to draw.")
    var count = 3

    func validate() throws {
        guard (1...1_000).contains(count) else { throw ValidationError("--count must be 1 to 1000.") }
    }

    func run() async throws {
        let place = URL(fileURLWithPath: folder)
        do { try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true) } catch {
            throw DropError(.disk, "cannot create the folder \(folder): \(error.localizedDescription)")
        }
        for number in 1...count {
            let file = place.appending(path: "picture-\(number).png")
            let png = Data(DrawnPicture(number: number).png)
            do { try png.write(to: file, options: .withoutOverwriting) } catch {
                throw DropError(.disk, "cannot write \(file.path): \(error.localizedDescription)")
            }
            try Output.line(file.path)
        }
    }
}
