import ArgumentParser
import Loveseat
import PhotoDropCore
import PhotoDropKit

struct RecallPhotos: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "recall",
        abstract: "Take back photos that were sent.",
        discussion: """
            Deletes photos at a receiver that was started with --allow-recall, while its session runs. The files in its \
            folder go too, unless somebody has changed them.

            CODE is the code that they were sent with, and --sender the ID that `photodrop send` printed. Name the same \
            files as then, and use --strip and --max-edge as then: a photo is recognized by its name and its content.

            Exits with 0 when the receiver has deleted every photo.
            """
    )

    @OptionGroup var options: SenderOptions

    func validate() throws {
        guard options.sender != nil else {
            throw ValidationError("Add --sender with the ID that `photodrop send` has printed.")
        }
        guard !paths.isEmpty else { throw ValidationError("Name a code and at least one photo or folder.") }
    }

    func run() async throws {
        guard let sender = options.sender.flatMap({ SenderID($0) }) else { return }
        try options.checkPrograms()
        let code = try await options.readCode()
        let work = Task { try await recall(code, sender) }
        Signals.onInterrupt { work.cancel() }
        let result = await work.result
        if let signal = Signals.interruption { throw ExitCode(128 + signal) }
        try result.get()
    }

    /// The files and folders.
    private var paths: [String] {
        options.qr == nil ? Array(options.arguments.dropFirst()) : options.arguments
    }

    private func recall(_ code: ScannedCode, _ sender: SenderID) async throws {
        let lines = ProgressLines(json: options.json)
        defer { lines.end() }
        let target = try await options.findTarget(code) { lines.show($0) }
        let run = RecallRun(target, sender: sender, patience: options.patience)
        let (recalls, refusals) = try await run.recall(FileFinder.expand(paths), options.changes)
        lines.end()
        for refusal in refusals { try show(refusal.name, id: nil, error: refusal.reason) }
        for recall in recalls { try show(recall.photo.name, id: recall.photo.id, error: Self.error(recall)) }
        let count = recalls.count { $0.outcome == .recalled }
        let total = recalls.count + refusals.count
        if options.json {
            let failed = total - count
            try Output.line(["event": "done", "recalled": JSONValue(count), "failed": JSONValue(failed)])
        }
        guard count == total else {
            throw DropError(.partial, "not recalled: \(total - count) of \(total)")
        }
    }

    private func show(_ name: String, id: String?, error: String?) throws {
        guard options.json else {
            if let error { return Output.remark("photodrop: \(name): \(error)") }
            return try Output.line("recalled \(name)")
        }
        var line: JSONObject = ["event": "photo", "name": .string(name)]
        if let id { line["id"] = .string(id) }
        line["state"] = .string(error == nil ? "recalled" : "failed")
        if let error { line["error"] = .string(error) }
        try Output.line(line)
    }

    /// Why a photo was not recalled; nil if it was.
    private static func error(_ recall: Recall) -> String? {
        switch recall.outcome {
        case .recalled: nil
        case .differs:
            "the receiver has another version of it: use the name and the options that it was sent with"
        case .failed(let reason): reason
        }
    }
}
