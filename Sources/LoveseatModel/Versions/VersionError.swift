/// The reason why something is not a version or a version vector, or why a new one cannot be made.
package struct VersionError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of error.
    package enum Reason: String, Hashable, Sendable {
        /// The text is longer than ``VersionVector/maximumBytes``.
        case tooLong = "longer than 65,536 bytes"
        /// The vector has more versions than ``VersionVector/maximumCount``.
        case tooManyVersions = "more than 1,000 versions"
        /// A version should stand here, and does not.
        case missingVersion = "a version is missing"
        /// The text does not begin with hexadecimal digits.
        case missingTime = "a version does not begin with a hexadecimal time"
        /// The time has more than 16 digits.
        case timeTooLong = "a time has more than 16 digits"
        /// The time is 0, which is not the time of any version.
        case timeIsZero = "a time is 0"
        /// No `@` follows the time.
        case missingSource = "a time is not followed by @ and a source"
        /// The source is not 16 bytes.
        case invalidSource = "a source is not 22 characters of Base64 for 16 bytes"
        /// All bytes of the source are zero.
        case reservedSource = "the source of 16 zero bytes is reserved"
        /// The source is `*`, with which Couchbase Lite means itself. It means nothing to others.
        case ownSource = "the source * has no meaning outside of its database"
        /// Something else than a separator follows a version.
        case unexpectedCharacter = "unexpected character"
        /// The text has more than one semicolon.
        case secondSemicolon = "a second semicolon"
        /// Two versions have the same source, and the second one is not an older merge version.
        case duplicateSource = "a source occurs twice"
        /// The current version's source is also that of a merge version that is not older.
        case mergeVersionNotOlder = "a merge version is not older than the current version of its source"
        /// The revision ID of a tree is not valid.
        case invalidRevision = "an invalid revision ID"
        /// A version follows a revision ID of a tree, which is older than all versions.
        case versionAfterRevision = "a version after a revision ID"
        /// Bytes are not the binary form of a vector.
        case invalidBytes = "not the binary form of a version vector"

        /// The time is outside of ``HybridClock/validTimes``.
        case timeOutOfRange = "a time outside of the valid range"
        /// The time lies more than ``HybridClock/maximumLead`` ahead of the system's clock.
        case timeTooFarAhead =
            "a time more than 120 seconds ahead of the receiver's clock: set the clocks of both devices"

        /// An operation needs a current version, and the vector is empty.
        case emptyVector = "an empty version vector"
        /// Both current versions have the same author. One author's versions follow each other, so they cannot be in conflict.
        case sameAuthor = "versions by one author cannot be merged"
        /// A new version must be later than the versions by the same author that it replaces.
        case timeNotLater = "a new version is not later than its author's last one"
    }

    /// The kind of error.
    package let reason: Reason
    /// The byte offset of the error in the text, from 0; nil if it has no place in a text.
    package let offset: Int?

    package init(_ reason: Reason, at offset: Int? = nil) {
        self.reason = reason
        self.offset = offset
    }

    /// The reason and the offset, for logs and for answers to peers.
    package var description: String {
        let place = offset.map { " at byte \($0)" } ?? ""
        return "invalid version: \(reason.rawValue)\(place)"
    }
}
