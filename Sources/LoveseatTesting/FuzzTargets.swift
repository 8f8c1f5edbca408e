import Foundation
import LoveseatBLIP
import LoveseatIdentity
import LoveseatModel
import LoveseatNetwork

/// The fuzz targets: each takes any bytes, and traps only where Loveseat is wrong.
public enum FuzzTargets {
    /// All targets by the names that `FUZZ` and the folders of `Fuzzing/FailCases` have.
    public static let named: [String: @Sendable ([UInt8]) -> Void] = [
        "active": active, "arrivals": arrivals, "blip": blip, "certificate": certificate, "delta": delta,
        "discovery": discovery, "http": http,
        "identity": identity,
        "json": json, "pairing": pairing, "passive": passive, "query": query, "response": response,
        "tree": tree, "version": version,
        "versioned-active": { converse(.activeWithVersions, $0) },
        "versioned-passive": { converse(.passiveWithVersions, $0) },
        "open-active": { converse(.activeOpen, $0) }, "open-passive": { converse(.passiveOpen, $0) },
        "websocket": webSocket,
    ]

    /// Text that scans can be walked, and its canonical form is JSON that stays as it is.
    public static func json(_ bytes: [UInt8]) {
        // Most bytes are not JSON.
        guard let element = try? JSONElement(parsing: bytes) else { return }
        _ = element.value
        let text = JSONText(canonical: element)
        guard let again = try? JSONText(text.bytes) else {
            preconditionFailure("the canonical form is not JSON")
        }
        precondition(again.canonical == text, "the canonical form has another canonical form")
        _ = BlobReference.all(in: text)
    }

    /// Frames, each with its length in two bytes before it, as they might arrive from a hostile peer. Buffered bytes stay within the
    /// limits.
    public static func blip(_ bytes: [UInt8]) {
        var limits = BLIPLimits()
        limits.largestMessage = 1 << 16
        limits.incomingBytes = 1 << 18
        limits.inflatedFrame = 1 << 16
        let connection = BLIPConnection(limits: limits)
        for frame in pieces(of: bytes) {
            do throws(BLIPError) {
                try connection.receive(frame)
                for event in connection.drainEvents() {
                    if case .request(let number, let message) = event, !message.noReply {
                        try connection.reply(LoveseatBLIP.Message(body: message.body), to: number)
                    }
                }
                while try connection.nextFrame() != nil {}
            } catch { return }
        }
        _ = connection.disconnect()
    }

    /// Two documents and a delta, one in each piece. The delta is applied to the first document or refused, and a delta from the first
    /// document to the second is found.
    public static func delta(_ bytes: [UInt8]) {
        // Pieces that are not JSON are left out.
        let values = pieces(of: bytes).compactMap { try? JSONElement(parsing: $0).value }
        if values.count < 2 { return }
        if let made = try? JSONDelta.apply(values[1], to: values[0]) { _ = JSONText(canonical: made) }
        let target = values[values.count - 1]
        let found = JSONDelta.create(from: values[0], to: target)
        switch found {
        case .object, .array:
            let again = try? JSONDelta.apply(found, to: values[0])
            precondition(
                again.map { JSONDelta.isSame($0, target) } == true,
                "a delta does not lead where it should"
            )
        case .null, .bool, .number, .string: preconditionFailure("a delta is neither an object nor an array")
        }
    }

    /// A certificate, as a peer shows it in a handshake, and whether it is to be trusted.
    public static func certificate(_ bytes: [UInt8]) {
        // Most bytes are not a certificate.
        guard let certificate = try? TLSCertificate(der: bytes) else { return }
        _ = (certificate.commonName, certificate.subject, certificate.issuer, certificate.isSelfSigned)
        _ = (certificate.notValidBefore, certificate.notValidAfter, certificate.fingerprint)
    }

    /// A PKCS#12 container, and a PEM text with key and certificates.
    public static func identity(_ bytes: [UInt8]) {
        // Most bytes are not an identity: they are refused.
        _ = try? TLSIdentity.importIdentity(withData: Data(bytes), password: "x", label: nil)
        let text = String(decoding: bytes, as: UTF8.self)
        _ = try? TLSIdentity.importIdentity(
            withCertificates: text,
            privateKey: text,
            password: "x",
            label: nil
        )
    }

    /// The text of a pairing code, as a camera reads it.
    public static func pairing(_ bytes: [UInt8]) {
        // Most texts are not a pairing code.
        guard let code = try? PairingCode(text: String(decoding: bytes, as: UTF8.self)) else { return }
        guard let again = try? PairingCode(text: code.text) else {
            preconditionFailure("a code's own text is not a code")
        }
        precondition(again == code, "a code's text means another code")
    }

    /// A version vector, as text and in its binary form, and the rest of a revision's history. The written form of a vector
    /// says the same as what was read.
    public static func version(_ bytes: [UInt8]) {
        // Most bytes are neither form of a vector.
        if let vector = try? VersionVector(utf8: bytes) { examine(vector) }
        if let vector = try? VersionVector(encoded: bytes) { examine(vector) }
        let texts = pieces(of: bytes).prefix(2).map { String(decoding: $0, as: UTF8.self) }
        // The first piece is the revision, the second one its history. Most are refused.
        guard texts.count == 2, let history = try? StateHistory(rev: texts[0], history: texts[1]),
            let rev = history.rev
        else { return }
        examine(history.vector)
        // Blanks make the written form longer than what was read, and there is a limit.
        if rev.utf8.count + (history.history ?? "").utf8.count + 2 > VersionVector.maximumBytes { return }
        let again = try? StateHistory(rev: rev, history: history.history)
        precondition(again == history, "a history's own text says something else")
        precondition(history.relation(to: history) == .same, "a history is not the same as itself")
        // The second piece may be a state of its own.
        guard let other = try? StateHistory(texts[1]) else { return }
        let (relation, reverse) = (history.relation(to: other), other.relation(to: history))
        precondition(relation == reverse.reversed, "two histories are related in two ways")
        _ = history.relationOfCouchbaseLite(to: other)
        let united = history.vector.united(with: other.vector)
        precondition(
            united == other.vector.united(with: history.vector),
            "two vectors are united in two ways"
        )
    }

    private static func examine(_ vector: VersionVector) {
        precondition((try? VersionVector(vector.text)) == vector, "a vector's own text says something else")
        precondition(vector.relation(to: vector) == .same, "a vector is not the same as itself")
        // The binary form has 63 bits for a time.
        guard vector.versions.allSatisfy({ $0.time <= HybridClock.validTimes.upperBound }) else { return }
        let again = try? VersionVector(encoded: vector.encoded())
        precondition(again == vector, "a vector's own bytes say something else")
        var clock = HybridClock()
        // Times outside of the valid range are refused.
        try? clock.see(vector, wall: 0x18E9_F1F2_E876_1234)
        _ = try? vector.edited(by: SourceID(high: 1, low: 1), at: clock.now(wall: 0))
        _ = vector.pruned(wall: 0x18E9_F1F2_E876_1234)
    }

    /// Joins pieces, with the length before each in two bytes. Pieces are cut off at the length that this can say.
    package static func bytes(of pieces: [[UInt8]]) -> [UInt8] {
        pieces.flatMap { piece in
            let piece = piece.prefix(0xFFFF)
            return [UInt8(piece.count >> 8), UInt8(piece.count & 0xFF)] + piece
        }
    }

    /// Cuts bytes at the lengths that stand in them, in two bytes each.
    package static func pieces(of bytes: [UInt8]) -> [[UInt8]] {
        var pieces: [[UInt8]] = []
        var rest = bytes[...]
        while let high = rest.popFirst(), let low = rest.popFirst() {
            let piece = rest.prefix(Int(high) << 8 | Int(low))
            rest = rest.dropFirst(piece.count)
            pieces.append(Array(piece))
        }
        return pieces
    }
}
