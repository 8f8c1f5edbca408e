import Foundation
import LoveseatQuery
import LoveseatText

/// How texts are compared: a ``Collation``, or the beginning of one.
public protocol CollationProtocol: Sendable {
    /// The collation.
    var collation: Collation { get }
}

/// How texts are compared; see ``ExpressionProtocol/collate(_:)``.
public struct Collation: CollationProtocol {
    let options: TextCollation

    /// The collation itself.
    public var collation: Collation { self }

    /// Compares texts by their bytes.
    public static func ascii() -> ASCII { ASCII(options: TextCollation()) }

    /// Compares texts by the Unicode Collation Algorithm, in the order of the current locale's language.
    public static func unicode() -> Unicode {
        Unicode(
            options: TextCollation(
                isUnicode: true,
                locale: Locale.current.language.languageCode?.identifier
            )
        )
    }

    /// A collation that compares texts by their bytes.
    public struct ASCII: CollationProtocol {
        fileprivate var options: TextCollation

        /// The collation.
        public var collation: Collation { Collation(options: options) }

        /// Says whether ASCII letters are equal in both cases. The default is false.
        public func ignoreCase(_ ignoreCase: Bool) -> ASCII {
            var copy = self
            copy.options.ignoresCase = ignoreCase
            return copy
        }
    }

    /// A collation that compares texts by the Unicode Collation Algorithm.
    public struct Unicode: CollationProtocol {
        fileprivate var options: TextCollation

        /// The collation.
        public var collation: Collation { Collation(options: options) }

        /// Says whether letters are equal in both cases. The default is false.
        public func ignoreCase(_ ignoreCase: Bool) -> Unicode {
            var copy = self
            copy.options.ignoresCase = ignoreCase
            return copy
        }

        /// Says whether letters are equal with and without accents. The default is false.
        public func ignoreAccents(_ ignoreAccents: Bool) -> Unicode {
            var copy = self
            copy.options.ignoresAccents = ignoreAccents
            return copy
        }

        /// Sets the language whose order is used, such as `sv`. Nil is the order that suits most languages; the default is the current
        /// locale's language.
        public func locale(_ locale: String?) -> Unicode {
            var copy = self
            copy.options.locale = locale
            return copy
        }
    }
}
