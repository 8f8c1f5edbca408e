import Foundation
package import LoveseatModel
import NIOConcurrencyHelpers

/// The two forms of a pairing code's secret. Both are valid for the same exchange.
package enum PairingForm: String {
    /// The long secret of a QR code.
    case text
    /// The six digits.
    case digits
}

/// The messages of a pairing: parameters of `Authorization` and `WWW-Authenticate` headers with the scheme `LoveseatPair`
/// (`docs/extensions.md`).
package struct PairingHeader {
    static let scheme = "LoveseatPair"
    /// The header of the last response, which names the listener's device.
    static let nameField = "Loveseat-Name"
    private static let maximumLength = 1_024

    private(set) var parameters: [String: String] = [:]

    init() {}

    /// Reads a header's value; nil for other schemes.
    package init?(_ value: String) {
        guard value.utf8.count <= Self.maximumLength, value.hasPrefix(Self.scheme + " ") else { return nil }
        for part in value.dropFirst(Self.scheme.count + 1).split(separator: ",") {
            let pair = part.split(separator: "=", maxSplits: 1)
            guard pair.count == 2, pair[1].count >= 2, pair[1].hasPrefix("\""), pair[1].hasSuffix("\"") else {
                return nil
            }
            parameters[pair[0].filter { $0 != " " }] = String(pair[1].dropFirst().dropLast())
        }
    }

    subscript(name: String) -> String? {
        get { parameters[name] }
        set { parameters[name] = newValue }
    }

    /// Bytes of a parameter in hexadecimal; nil unless there are `count` of them.
    package func bytes(_ name: String, count: Int) -> [UInt8]? {
        guard let text = parameters[name], text.utf8.count == count * 2 else { return nil }
        let digits = text.compactMap(\.hexDigitValue)
        guard digits.count == count * 2 else { return nil }
        return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }

    mutating func set(_ name: String, _ bytes: [UInt8]) {
        parameters[name] = bytes.hexadecimalText
    }

    var text: String {
        let list = parameters.sorted { $0.key < $1.key }.map { "\($0.key)=\"\($0.value)\"" }
        return "\(Self.scheme) \(list.joined(separator: ", "))"
    }
}

/// The names that devices give themselves, for people to read. Rights never depend on them.
public enum DeviceName {
    private static let maximumLength = 64

    /// The name of this host, by which a peer that is paired with it knows it: its ``PairedPeer/name``, unless the peer's owner gave another one.
    public static var ofThisHost: String { ProcessInfo.processInfo.hostName }

    /// The name in a header.
    static func encoded(_ name: String) -> String {
        String(name.prefix(maximumLength)).addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
    }

    /// The name from a header, without characters that could confuse a terminal; nil if nothing is left.
    static func decoded(_ text: String?) -> String? {
        guard let text, text.utf8.count <= 16 * maximumLength, let name = text.removingPercentEncoding else {
            return nil
        }
        let scalars = name.unicodeScalars.filter {
            ![.control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned]
                .contains($0.properties.generalCategory)
        }
        let clean = String(String(String.UnicodeScalarView(scalars)).prefix(maximumLength))
        return clean.isEmpty ? nil : clean
    }
}

/// Lengths and the label, which both sides share.
private enum PairingParameters {
    static let sessionBytes = 16
    static let shareBytes = 32
    static let proofBytes = 64

    static func session(_ secret: String, _ form: PairingForm, number: [UInt8]) -> CPace.Session {
        CPace.Session(
            secret: Array(secret.utf8),
            label: Array("loveseat pairing 2 \(form.rawValue)".utf8),
            number: number
        )
    }
}

/// The client's side of one pairing: it begins, and trusts nothing before the listener has proved that it knows the code.
package final class PairingInitiator: Sendable {
    private struct State {
        var hasProof = false
        var listenerName: String?
    }

    private let session: CPace.Session
    private let exchange: CPace
    private let form: PairingForm
    private let client: String
    private let name: String
    private let state = NIOLockedValueBox(State())

    /// `client`: the fingerprint of the certificate that the client shows. `name`: that of the device.
    package init(secret: String, form: PairingForm, client: String, name: String) throws {
        session = PairingParameters.session(
            secret,
            form,
            number: (0..<PairingParameters.sessionBytes).map { _ in UInt8.random(in: 0...255) }
        )
        exchange = try CPace(session)
        self.form = form
        self.client = client
        self.name = name
    }

    /// Whether the listener has proved that it knows the code.
    var isListenerProved: Bool { state.withLockedValue { $0.hasProof } }
    /// The name that the listener's device gives itself.
    var listenerName: String? { state.withLockedValue { $0.listenerName } }

    /// The first `Authorization` header.
    package var opening: String {
        var header = PairingHeader()
        header["form"] = form.rawValue
        header.set("session", session.number)
        header.set("share", exchange.share)
        return header.text
    }

    /// The second `Authorization` header, in answer to a `WWW-Authenticate` header of the listener with this fingerprint.
    ///
    /// - Throws: ``LoveseatError``: `httpAuthRequired` unless the listener proves that it knows the code.
    package func answer(_ challenge: String, listener: String) throws(LoveseatError) -> String {
        guard !isListenerProved, let header = PairingHeader(challenge),
            let share = header.bytes("share", count: PairingParameters.shareBytes),
            let proof = header.bytes("proof", count: PairingParameters.proofBytes)
        else { throw Self.refused }
        let first = CPace.Message(share: exchange.share, associated: Array(client.utf8))
        let second = CPace.Message(share: share, associated: Array(listener.utf8))
        // The listener's share may be a point of low order, which makes no key.
        guard let key = try? exchange.key(first: first, second: second),
            CPace.isProof(proof, key, session, of: second)
        else { throw Self.refused }
        state.withLockedValue { $0.hasProof = true }
        var answer = PairingHeader()
        answer.set("proof", CPace.proof(key, session, of: first))
        answer["name"] = DeviceName.encoded(name)
        return answer.text
    }

    func noteListenerName(_ text: String?) {
        state.withLockedValue { $0.listenerName = DeviceName.decoded(text) }
    }

    static let refused = LoveseatError(
        .httpAuthRequired,
        "the pairing code is wrong, used or too old, or the listener is not the one that shows it: ask for a new code"
    )
}

/// The listener's side of one pairing.
package struct PairingResponder {
    /// The client's first message.
    package struct Opening {
        let form: PairingForm
        let number: [UInt8]
        let share: [UInt8]

        package init?(_ header: PairingHeader) {
            guard let form = header["form"].flatMap(PairingForm.init),
                let number = header.bytes("session", count: PairingParameters.sessionBytes),
                let share = header.bytes("share", count: PairingParameters.shareBytes)
            else { return nil }
            self.form = form
            self.number = number
            self.share = share
        }
    }

    private let session: CPace.Session
    private let key: [UInt8]
    private let first: CPace.Message
    /// The `WWW-Authenticate` header, with the listener's proof.
    package let challenge: String

    package init(_ opening: Opening, secret: String, client: String, listener: String) throws {
        session = PairingParameters.session(secret, opening.form, number: opening.number)
        let exchange = try CPace(session)
        first = CPace.Message(share: opening.share, associated: Array(client.utf8))
        let second = CPace.Message(share: exchange.share, associated: Array(listener.utf8))
        key = try exchange.key(first: first, second: second)
        var header = PairingHeader()
        header.set("share", exchange.share)
        header.set("proof", CPace.proof(key, session, of: second))
        challenge = header.text
    }

    /// Whether a client's second header proves that it knows the code.
    package func accepts(_ header: PairingHeader) -> Bool {
        guard let proof = header.bytes("proof", count: PairingParameters.proofBytes) else { return false }
        return CPace.isProof(proof, key, session, of: first)
    }
}
