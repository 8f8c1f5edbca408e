/// Removes metadata, such as where a picture was taken, from a file that passes through in pieces.
///
/// What is needed to show the picture is listed. Everything else is left out, whether it is known or not.
package protocol MetadataStripper {
    /// Takes the next piece, and appends what stays to the output.
    ///
    /// - Throws: `data` if the file is damaged.
    mutating func process(_ bytes: some Collection<UInt8>, into output: inout [UInt8]) throws(DropError)
    /// Called at the end of the file.
    ///
    /// - Throws: `data` if the file is cut off.
    func finish() throws(DropError)
}

extension ImageType {
    /// Returns a stripper for files of this type.
    ///
    /// - Throws: `data` for types of which metadata cannot be removed.
    package func makeStripper() throws(DropError) -> any MetadataStripper {
        switch self {
        case .jpeg: return JPEGStripper()
        case .png: return PNGStripper()
        default: throw DropError(.data, "cannot strip \(fileExtension.uppercased())")
        }
    }
}
