import Foundation
import LoveseatCouchDBTesting
import LoveseatTesting

/// libFuzzer's own main, for programs that have one already.
@_silgen_name("LLVMFuzzerRunDriver")
private func runFuzzer(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ target: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

private let targets = FuzzTargets.named.merging(CouchDBFuzzTargets.named) { first, _ in first }
private let target = targets[ProcessInfo.processInfo.environment["FUZZ"] ?? ""]
guard target != nil else {
    print("say what to fuzz: FUZZ=\(targets.keys.sorted().joined(separator: ", "))")
    exit(64)
}
// Unsafe only in name: libFuzzer takes the arguments by address and may rewrite them, before anything else runs.
nonisolated(unsafe) private var count = CommandLine.argc
nonisolated(unsafe) private var arguments = CommandLine.unsafeArgv
_ = runFuzzer(&count, &arguments) { start, length in
    target?(Array(UnsafeBufferPointer(start: start, count: length)))
    return 0
}
