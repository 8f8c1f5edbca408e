import Foundation
import LoveseatBLIP
import LoveseatCore
import LoveseatIdentity
import LoveseatModel
import LoveseatNetwork
import LoveseatReplication
import LoveseatStorage

/// What fuzzers feed: each takes any bytes, and traps only where Loveseat is wrong.
public enum FuzzTargets {
    /// Text that scans can be walked, and its canonical form is JSON that stays as it is.
    public static func json(_ bytes: [UInt8]) {
        guard let element = try? JSONElement(parsing: bytes) else { return }
        _ = element.value
        let text = JSONText(canonical: element)
        guard let again = try? JSONText(text.bytes) else {
            preconditionFailure("the canonical form is no JSON")
        }
        precondition(again.canonical == text, "the canonical form has another canonical form")
        _ = BlobReference.all(in: text)
    }

    /// Frames, each with its length in two bytes before it, as they might arrive from a hostile peer. What is buffered
    /// stays within the limits.
    public static func blip(_ bytes: [UInt8]) {
        var limits = BLIPLimits()
        limits.largestMessage = 1 << 16
        limits.incomingBytes = 1 << 18
        limits.inflatedFrame = 1 << 16
        let connection = BLIPConnection(limits: limits)
        for frame in pieces(of: bytes) {
            do throws(BLIPError) {
                try connection.receive(frame)
                for event in connection.takeEvents() {
                    if case .request(let number, let message) = event, !message.noReply {
                        try connection.reply(LoveseatBLIP.Message(body: message.body), to: number)
                    }
                }
                while try connection.nextFrame() != nil {}
            } catch { return }
        }
        _ = connection.disconnect()
    }

    /// Messages that break no rule of BLIP's, to the passive side of an empty database: a kind, properties and a body
    /// each, cut out of the bytes.
    public static func passive(_ bytes: [UInt8]) {
        guard let scratch = try? Scratch(),
            let store = try? DocumentStore.inMemory(blobFolder: "\(scratch.path)/blobs")
        else { return }
        let session = ReplicationSession(passive: PassivePlan(collections: [.default]))
        let replica = StoreReplica(store: store, nowMilliseconds: { 0 })
        let peer = ReplicationPeer(session: session)
        let hostile = BLIPConnection()
        var actions = peer.connected(.mobile3)[...]
        func work() {
            while let action = actions.popFirst() {
                if case .store(let request, let continuation) = action {
                    actions.append(contentsOf: peer.stored(continuation, replica.perform(request)))
                }
            }
            while let frame = peer.nextFrame().frame {
                do throws(BLIPError) { try hostile.receive(frame) } catch { return }
            }
            _ = hostile.takeEvents()
        }
        for piece in pieces(of: bytes) where !peer.isOver {
            guard let message = message(piece) else { continue }
            do throws(BLIPError) {
                try hostile.send(message, tag: 1)
                while let frame = try hostile.nextFrame() { actions.append(contentsOf: peer.receive(frame)) }
            } catch { return }
            work()
        }
        actions.append(contentsOf: peer.disconnected())
        work()
        precondition((try? store.check()) == [], "the database is damaged")
    }

    /// A certificate, as a peer shows it in a handshake, and whether it is to be trusted.
    public static func certificate(_ bytes: [UInt8]) {
        guard let certificate = try? TLSCertificate(der: bytes) else { return }
        _ = (certificate.commonName, certificate.subject, certificate.issuer, certificate.isSelfSigned)
        _ = (certificate.notValidBefore, certificate.notValidAfter, certificate.fingerprint)
    }

    /// A PKCS#12 container, and a PEM text with key and certificates.
    public static func identity(_ bytes: [UInt8]) {
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
        guard let code = try? PairingCode(text: String(decoding: bytes, as: UTF8.self)) else { return }
        guard let again = try? PairingCode(text: code.text) else {
            preconditionFailure("a code's own text is no code")
        }
        precondition(again == code, "a code's text means another code")
    }

    private static let profiles = [
        "getCollections", "getCheckpoint", "setCheckpoint", "subChanges", "changes", "proposeChanges", "rev",
        "norev",
        "getAttachment", "proveAttachment", "unsubChanges", "x",
    ]

    /// The first byte is the profile, the second how many lines of `name=value` follow; the rest is the body.
    private static func message(_ piece: [UInt8]) -> LoveseatBLIP.Message? {
        guard piece.count >= 2 else { return nil }
        var properties: MessageProperties = ["Profile": profiles[Int(piece[0]) % profiles.count]]
        var rest = piece[2...]
        for _ in 0..<Int(piece[1] % 8) {
            let line = rest.prefix { $0 != 0x0A }
            rest = rest.dropFirst(line.count + 1)
            let parts = line.split(
                separator: UInt8(ascii: "="),
                maxSplits: 1,
                omittingEmptySubsequences: false
            )
            guard parts.count == 2 else { continue }
            let (name, value) = (
                String(decoding: parts[0], as: UTF8.self), String(decoding: parts[1], as: UTF8.self)
            )
            guard !name.utf8.contains(0), !value.utf8.contains(0) else { continue }
            properties[name] = value
        }
        return LoveseatBLIP.Message(properties, body: Array(rest))
    }

    private static func pieces(of bytes: [UInt8]) -> [[UInt8]] {
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
