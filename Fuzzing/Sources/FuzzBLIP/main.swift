import LoveseatTesting

/// libFuzzer's own main, for programs that have one already.
@_silgen_name("LLVMFuzzerRunDriver")
private func runFuzzer(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ target: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

nonisolated(unsafe) private var count = CommandLine.argc
nonisolated(unsafe) private var arguments = CommandLine.unsafeArgv
_ = runFuzzer(&count, &arguments) { start, length in
    FuzzTargets.blip(Array(UnsafeBufferPointer(start: start, count: length)))
    return 0
}
