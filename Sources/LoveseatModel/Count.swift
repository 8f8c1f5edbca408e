extension BinaryInteger {
    /// The number with a noun, in the plural unless the number is 1: `1 document`, `2 documents`.
    package func counted(_ noun: String) -> String { "\(self) \(noun)\(self == 1 ? "" : "s")" }
}
