import LoveseatTesting

/// Called by libFuzzer with bytes of its making.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    FuzzTargets.blip(Array(UnsafeBufferPointer(start: start, count: count)))
    return 0
}
