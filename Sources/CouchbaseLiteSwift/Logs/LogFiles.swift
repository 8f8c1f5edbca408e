import Foundation
import Synchronization

/// The files of a ``FileLogSink``, one for each level. It is safe to use from any thread.
final class LogFiles: Sendable {
    private struct File {
        let handle: FileHandle
        var size: UInt64
    }

    private static let suffix = ".cbllog"

    private let sink: FileLogSink
    private let files = Mutex<[LogLevel: File]>([:])

    init(_ sink: FileLogSink) { self.sink = sink }

    /// Writes a line. A message that cannot be written is lost: there is nobody to report it to.
    func write(_ level: LogLevel, _ domain: LogDomain, _ message: String) {
        let line = Data("\(Self.now) \(domain): \(message)\n".utf8)
        files.withLock { files in
            do {
                var file = try files[level] ?? open(level)
                if file.size >= sink.maxFileSize {
                    try? file.handle.close()
                    file = try open(level)
                }
                try append(line, to: &file)
                files[level] = file
            } catch { files[level] = nil }
        }
    }

    private func append(_ data: Data, to file: inout File) throws {
        try file.handle.write(contentsOf: data)
        file.size += UInt64(data.count)
    }

    /// Begins a file, and removes the oldest ones.
    private func open(_ level: LogLevel) throws -> File {
        let folder = URL(filePath: sink.directory)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let prefix = "cbl_\(level)_"
        let existing = try numbers(in: folder, prefix)
        // Files sort by number, also if two begin within a millisecond, or the clock was set back.
        let now = Int64(Date().timeIntervalSince1970 * 1_000)
        let number = max(now, (existing.last ?? 0) + 1)
        func url(_ number: Int64) -> URL { folder.appending(path: "\(prefix)\(number)\(Self.suffix)") }
        for old in existing.dropLast(max(sink.maxKeptFiles, 1) - 1) {
            // Somebody else may have removed it.
            try? FileManager.default.removeItem(at: url(old))
        }
        try Data().write(to: url(number))
        var file = File(handle: try FileHandle(forWritingTo: url(number)), size: 0)
        try append(Data("\(Self.now) Loveseat's CouchbaseLiteSwift, level \(level)\n".utf8), to: &file)
        return file
    }

    /// The numbers of the files of a level, in order.
    private func numbers(in folder: URL, _ prefix: String) throws -> [Int64] {
        try FileManager.default.contentsOfDirectory(atPath: folder.path)
            .filter { $0.hasPrefix(prefix) && $0.hasSuffix(Self.suffix) }
            .compactMap { Int64($0.dropFirst(prefix.count).dropLast(Self.suffix.count)) }
            .filter { $0 >= 0 && $0 < .max }
            .sorted()
    }

    private static var now: String {
        Date().formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    }
}
