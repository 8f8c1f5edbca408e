import LoveseatModel

/// Takes the long attachments out of JSON while it comes, so that they need not fit into memory (protocol/couchdb.md §6.1).
///
/// The text that is left is for ``IncomingDocument``: where an attachment was, it has a reference that no client can guess. Short
/// attachments stay as they are, and so does everything that is written with escapes in the names of its members.
package struct InlineContentScanner {
    /// A piece of the content of an attachment, or its end.
    package enum Content {
        /// Base64 digits, without JSON's escapes. A byte of 255 stands for a character that cannot be a digit.
        case digits([UInt8])
        case ended
    }

    /// An open object or array in which attachments may be.
    private enum Level {
        case batch, documents, document, attachments, attachment

        var isObject: Bool { self != .documents }

        /// The level of a container in this one; nil if no attachments can be in it.
        func inner(key: [UInt8], isObject: Bool) -> Level? {
            switch self {
            case .batch: return !isObject && key.elementsEqual("docs".utf8) ? .documents : nil
            case .documents: return isObject ? .document : nil
            case .document: return isObject && key.elementsEqual("_attachments".utf8) ? .attachments : nil
            case .attachments: return isObject ? .attachment : nil
            case .attachment: return nil
            }
        }
    }

    private enum Place: Equatable {
        case between
        /// In a string, perhaps a member's name.
        case string(isKey: Bool)
        /// In the beginning of an attachment, which may be short.
        case shortContent
        case longContent
    }

    /// An escape that is being read, after its backslash.
    private struct Escape {
        /// The digits of `\u` that are missing; 0 before the first byte.
        var missing = 0
        var value: UInt32 = 0
    }

    /// The longest name that is looked for, in bytes.
    private static let longestKey = "_attachments".utf8.count
    /// The size from which an attachment is taken out, in bytes of Base64.
    package static let shortest = 64 << 10
    private static let invalid: UInt8 = 255

    private let isBatch: Bool
    /// The beginning of every reference. It is not Base64.
    package let mark: [UInt8]
    private var levels: [Level] = []
    /// The open containers within the innermost level in which no attachments can be.
    private var depth = 0
    private var place = Place.between
    private var isKeyNext = false
    /// The name of the present member, without its quotes, or the beginning of a long one.
    private var key: [UInt8] = []
    /// The beginning of a content.
    private var held: [UInt8] = []
    /// The digits of a long content that were read and are not passed on yet.
    private var run: [UInt8] = []
    private var escape: Escape?
    /// The number of attachments that were taken out.
    package private(set) var count = 0

    /// `isBatch`: whether the documents are in the array `docs` of an object, as in `_bulk_docs`. `mark`: the beginning of every reference;
    /// it should be random, and must not be Base64.
    package init(isBatch: Bool, mark: [UInt8]) { (self.isBatch, self.mark) = (isBatch, mark) }

    /// Reads a piece of the text: appends what is left of it to `text`, and calls `content` with what is taken out.
    package mutating func scan(
        _ piece: UnsafeRawBufferPointer,
        into text: inout [UInt8],
        content: (Content) throws -> Void
    ) rethrows {
        let bytes = piece.bindMemory(to: UInt8.self)
        var at = 0
        while at < bytes.count {
            switch place {
            case .between:
                text.append(bytes[at])
                structure(bytes[at])
                at += 1
            case .string(let isKey):
                let end = string(bytes, from: at, isKey: isKey)
                text.append(contentsOf: bytes[at..<end])
                at = end
            case .shortContent:
                let end = string(bytes, from: at, isKey: false)
                held.append(contentsOf: bytes[at..<end])
                at = end
                let isComplete = place == .between
                if held.count > Self.shortest + (isComplete ? 1 : 0) {
                    try extract(&text, content)
                } else if isComplete {
                    text += held
                    held.removeAll(keepingCapacity: true)
                }
            case .longContent:
                at = try digits(bytes, from: at, &text, content)
            }
        }
        try giveRun(content)
    }

    // MARK: Structure

    private mutating func structure(_ byte: UInt8) {
        switch byte {
        case UInt8(ascii: "{"), UInt8(ascii: "["): open(isObject: byte == UInt8(ascii: "{"))
        case UInt8(ascii: "}"), UInt8(ascii: "]"):
            if depth > 0 { depth -= 1 } else { _ = levels.popLast() }
            isKeyNext = false
        case UInt8(ascii: ","): isKeyNext = depth == 0 && levels.last?.isObject == true
        case UInt8(ascii: ":"): isKeyNext = false
        case UInt8(ascii: "\""):
            if isKeyNext { key.removeAll(keepingCapacity: true) }
            let isContent = !isKeyNext && depth == 0 && levels.last == .attachment
            place =
                isContent && key.elementsEqual("data".utf8) ? .shortContent : .string(isKey: isKeyNext)
        default: break
        }
    }

    private mutating func open(isObject: Bool) {
        let inner: Level? =
            if depth > 0 {
                nil
            } else if let last = levels.last {
                last.inner(key: key, isObject: isObject)
            } else {
                isObject ? isBatch ? .batch : .document : nil
            }
        if let inner { levels.append(inner) } else { depth += 1 }
        isKeyNext = depth == 0 && inner?.isObject == true
    }

    /// Passes over a string, with its closing quote, or over what there is of it.
    ///
    /// - Returns: where it ends.
    private mutating func string(_ bytes: UnsafeBufferPointer<UInt8>, from start: Int, isKey: Bool) -> Int {
        var at = start
        while at < bytes.count {
            let byte = bytes[at]
            at += 1
            if escape != nil {
                escape = nil
            } else if byte == UInt8(ascii: "\\") {
                escape = Escape()
            } else if byte == UInt8(ascii: "\"") {
                place = .between
                return at
            }
            if isKey, key.count <= Self.longestKey { key.append(byte) }
        }
        return at
    }

    // MARK: Content

    /// Takes out what is held: a long content as far as it came, perhaps with its closing quote.
    private mutating func extract(_ text: inout [UInt8], _ content: (Content) throws -> Void) rethrows {
        place = .longContent
        escape = nil
        let beginning = held
        held = []
        try beginning.withUnsafeBufferPointer {
            var at = 0
            while at < $0.count { at = try digits($0, from: at, &text, content) }
        }
    }

    /// Reads a content up to its closing quote, or what there is of it.
    ///
    /// - Returns: where it ends.
    private mutating func digits(
        _ bytes: UnsafeBufferPointer<UInt8>,
        from start: Int,
        _ text: inout [UInt8],
        _ content: (Content) throws -> Void
    ) rethrows -> Int {
        var at = start
        while at < bytes.count {
            if let escape {
                if unescape(bytes[at], escape) { at += 1 }
                continue
            }
            let first = at
            while at < bytes.count, bytes[at] != UInt8(ascii: "\""), bytes[at] != UInt8(ascii: "\\"),
                bytes[at] >= 0x20
            {
                at += 1
            }
            run.append(contentsOf: bytes[first..<at])
            guard at < bytes.count else { break }
            at += 1
            switch bytes[at - 1] {
            case UInt8(ascii: "\\"): escape = Escape()
            case UInt8(ascii: "\""):
                try giveRun(content)
                try content(.ended)
                text += mark
                text.append(contentsOf: String(count).utf8)
                text.append(UInt8(ascii: "\""))
                count += 1
                place = .between
                return at
            default: run.append(Self.invalid)
            }
        }
        return at
    }

    private mutating func giveRun(_ content: (Content) throws -> Void) rethrows {
        if run.isEmpty { return }
        try content(.digits(run))
        run.removeAll(keepingCapacity: true)
    }

    /// Reads the next byte of an escape, and adds what the escape stands for once it is complete.
    ///
    /// - Returns: whether the byte belongs to the escape.
    private mutating func unescape(_ byte: UInt8, _ read: Escape) -> Bool {
        escape = nil
        guard read.missing == 0 else {
            guard let digit = Character(UnicodeScalar(byte)).hexDigitValue else {
                run.append(Self.invalid)
                return false
            }
            let value = read.value << 4 | UInt32(digit)
            if read.missing > 1 {
                escape = Escape(missing: read.missing - 1, value: value)
            } else {
                run.append(value < 0x80 ? UInt8(value) : Self.invalid)
            }
            return true
        }
        switch byte {
        case UInt8(ascii: "u"): escape = Escape(missing: 4)
        case UInt8(ascii: "/"): run.append(byte)
        case UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"), UInt8(ascii: "b"), UInt8(ascii: "f"):
            run.append(UInt8(ascii: " "))
        default: run.append(Self.invalid)
        }
        return true
    }
}

/// The attachments that ``InlineContentScanner`` took out of a text.
package struct TakenOutContents: Sendable {
    /// The beginning of every reference.
    private let mark: [UInt8]
    /// Their lengths in bytes, in the order of the text.
    private let lengths: [Int]

    package init(mark: [UInt8], lengths: [Int]) { (self.mark, self.lengths) = (mark, lengths) }

    /// The content for which a string stands; nil if it is not a reference.
    func content(_ text: JSONElement) -> IncomingAttachment.Content? {
        let text = text.bytes.dropFirst().dropLast()
        guard text.starts(with: mark),
            let number = Int(String(decoding: text.dropFirst(mark.count), as: UTF8.self)),
            lengths.indices.contains(number)
        else { return nil }
        return .takenOut(number, length: lengths[number])
    }
}
