/// `vipsthumbnail`, in a process with little memory and time: image decoders are attack surface.
package struct Vips: Sendable {
    private static let seconds = 10
    private static let memory = 512 << 20
    /// The largest image that is decoded, in pixels.
    package static let maximumPixels = 100_000_000

    private let program: String
    private let limiter: String

    /// Nil if `vipsthumbnail` or `prlimit` is not installed.
    package init?() {
        guard let program = Programs.path(of: "vipsthumbnail"), let limiter = Programs.path(of: "prlimit")
        else { return nil }
        self.program = program
        self.limiter = limiter
    }

    /// Writes an upright copy of an image that is at most so large on each side. Returns whether that worked.
    ///
    /// `options`: how to encode it, as vips takes it behind a file's name.
    package func shrink(_ input: String, toEdge edge: Int, output: String, options: String) async -> Bool {
        let arguments = [
            "--cpu=\(Self.seconds)", "--as=\(Self.memory)", program, "-s", "\(edge)x\(edge)>", "-o",
            "\(output)[\(options)]", input,
        ]
        return await Programs.run(limiter, arguments)?.status == 0
    }
}
