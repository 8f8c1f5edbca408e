import Loveseat

/// Prints a line on standard error when `serve` is advertised, or cannot be.
enum AdvertisementLines {
    /// Prints until the task is cancelled. `quiet`: only what goes wrong.
    static func print(_ states: Feed<AdvertisementState>, quiet: Bool) async {
        for await state in states {
            switch state {
            case .notAdvertised: break
            case .advertised(let name, _): if !quiet { Output.remark("loveseat: advertised as \"\(name)\"") }
            case .failed(let error): Output.remark("loveseat: not advertised: \(error.message)")
            }
        }
    }
}
