import Foundation
import PhotoDropCore

/// `vipsthumbnail`, in a process with little memory and time: image decoders are attack surface.
package struct Vips: Sendable {
    /// How long it may run, in seconds. It may wait for a slow disk, for example.
    private static let seconds = 20
    /// How much of the processor's time it may take, in seconds.
    private static let processorSeconds = 10
    private static let memory = 512 << 20
    private static let thumbnailEdge = 320
    private static let nameBytes = 8
    /// The largest image that is decoded, in pixels.
    package static let maximumPixels = 100_000_000

    private let program: String
    private let limiter: String
    private let timer: String

    /// Nil if `vipsthumbnail`, `prlimit` or `timeout` is not installed.
    package init?() {
        guard let program = Programs.path(of: "vipsthumbnail"), let limiter = Programs.path(of: "prlimit"),
            let timer = Programs.path(of: "timeout")
        else { return nil }
        self.program = program
        self.limiter = limiter
        self.timer = timer
    }

    /// Writes an upright copy of an image that is at most so large on each side. Returns whether that worked.
    ///
    /// `options`: how to encode it, as vips takes it behind a file's name.
    package func shrink(_ input: String, toEdge edge: Int, output: String, options: String) async -> Bool {
        // A name that begins with - would be an option.
        let input = input.hasPrefix("-") ? "./\(input)" : input
        let arguments = [
            "-s", "KILL", "\(Self.seconds)", limiter, "--cpu=\(Self.processorSeconds)", "--as=\(Self.memory)",
            program, "-s", "\(edge)x\(edge)>", "-o", "\(output)[\(options)]", input,
        ]
        return await Programs.run(timer, arguments)?.status == 0
    }

    /// Makes a JPEG of at most 320 pixels on each side, upright and without metadata; nil if that is not possible.
    ///
    /// - Parameters:
    ///   - input: The path of the image.
    ///   - info: What its header says.
    ///   - folder: For a file that is needed meanwhile.
    /// - Returns: The content of the JPEG.
    package func thumbnail(of input: String, _ info: ImageInfo, in folder: String) async -> [UInt8]? {
        guard !info.type.isVideo, info.pixels ?? 0 <= Self.maximumPixels else { return nil }
        let name = TextCoding.hexadecimal(RandomBytes.make(Self.nameBytes))
        let output = "\(folder)/thumb-\(name).jpg"
        defer { try? FileManager.default.removeItem(atPath: output) }
        // Without `strip`, the thumbnail would keep the GPS position.
        guard await shrink(input, toEdge: Self.thumbnailEdge, output: output, options: "Q=80,strip"),
            let content = FileManager.default.contents(atPath: output),
            ImageType(sniffing: content) == .jpeg
        else { return nil }
        return Array(content)
    }
}
