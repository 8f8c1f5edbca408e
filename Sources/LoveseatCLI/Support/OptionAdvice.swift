import Foundation
import Loveseat

extension LoveseatError {
    /// The ends of messages that say what an app sets, each with the option of the command line instead.
    private static let optionAdvice = [
        (": set a ClientCertificateAuthenticator", ": show one with --identity"),
        (": use one that it trusts", ": use one that it trusts with --identity"),
        (": do not set acceptOnlySelfSignedServerCertificate", ": leave out --self-signed"),
        (", or pin it", ", or pin it with --pin"),
        (": if the server has a new one, pin that", ": if the server has a new one, pin that with --pin"),
        (", or let it serve CouchDB's wire", ", or start it with `serve --couchdb`"),
        ("), or trust its authority", ", or trust its authority with --ca"),
    ]

    /// The same error, with a message that names options of the command line.
    var namingOptions: LoveseatError {
        guard let (end, advice) = Self.optionAdvice.first(where: { message.hasSuffix($0.0) }) else {
            return self
        }
        var text = String(message.dropLast(end.count))
        // The certificate's subject comes before it, and may be any text.
        if end.hasPrefix(")"), let pin = text.range(of: "pin it (SHA-256 ", options: .backwards) {
            text.replaceSubrange(pin, with: "pin it with --pin ")
        }
        return LoveseatError(code, text + advice)
    }
}
