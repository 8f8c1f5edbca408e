/// Why a command ends, with its exit code from `sysexits.h`.
package struct DropError: Error, Hashable {
    package let kind: Kind
    /// One line for people: what happened, to which thing, what to do now.
    package let message: String
    /// Whether it may be otherwise later: waiting may help.
    package var mayPass = false

    package enum Kind: Int32, Hashable, Sendable {
        /// Some photos could not be sent or saved.
        case partial = 1
        case usage = 64
        /// A code or a photo that cannot be read.
        case data = 65
        case notFound = 66
        case unreachable = 69
        case disk = 74
        /// The code is wrong or used up, or the receiver is not the one that showed it.
        case refused = 77
    }

    package init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }
}
