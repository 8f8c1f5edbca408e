import ArgumentParser
import Foundation
import Loveseat

struct Identity: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Create, list, import and export keys with their certificates.",
        discussion: """
            Identities are stored in ~/.local/share/loveseat/identities (below $XDG_DATA_HOME, if that is set, instead of ~/.local/share), or \
            in the folder that LOVESEAT_IDENTITIES names. If \
            LOVESEAT_PASSPHRASE is set, their keys are encrypted with it.
            """,
        subcommands: [
            CreateIdentity.self, ListIdentities.self, ShowIdentity.self, DeleteIdentity.self,
            ImportIdentity.self,
            ExportIdentity.self,
        ]
    )
}

struct CreateIdentity: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "create",
        abstract: "Create a key and a certificate.",
        discussion:
            """
            EXAMPLE
              loveseat identity create our-ca --ca
              loveseat identity create kiosk --dns kiosk.local --ip 192.168.1.7 \\
                --issuer our-ca
            """
    )
    @Argument(help: "The label under which to store it.") var label: String
    @OptionGroup var quieting: QuietOption
    @Option(help: "The owner's name. The default is the label.") var commonName: String?
    @Option(help: "The owner's organisation.") var organization: String?
    @Option(help: "Host names it is for, separated by commas.") var dns: String?
    @Option(help: "IP addresses it is for, separated by commas.") var ip: String?
    @Option(help: "The number of days until it expires.") var days = 365
    @Option(
        help: "The label of the authority that signs it. By default it is self-signed.",
        completion: .identityLabel
    )
    var issuer: String?
    @Flag(help: "Create an authority, which can sign others.") var ca = false

    func run() throws {
        guard (1...36_500).contains(days) else {
            throw LoveseatError(.invalidParameter, "--days is \(days): use 1 to 36500")
        }
        if let name = dns?.listItems.first(where: { ServerName.isName($0) && !ServerName.canMatch($0) }) {
            throw LoveseatError(
                .invalidParameter,
                "--dns \(name) is for no host: * stands for a whole label below a domain, as in *.example.com"
            )
        }
        try Identities.require(unused: label)
        var attributes = [certAttrCommonName: commonName ?? label]
        attributes[certAttrOrganization] = organization
        attributes[certAttrHostname] = dns?.listItems.joined(separator: ",")
        attributes[certAttrIPAddress] = ip?.listItems.joined(separator: ",")
        let identity = try TLSIdentity.createIdentity(
            for: ca ? .certificateAuthority : [.serverAuth, .clientAuth],
            attributes: attributes,
            expiration: Date().addingTimeInterval(Double(days) * 86_400),
            issuer: try issuer.map(Identities.labelled),
            label: label,
            in: Identities.store
        )
        try Output.standard.line(identity.certs[0].fingerprint)
        try Output.standard.flush()
    }
}

struct ListIdentities: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List identities: label, fingerprint, expiration and subject.",
        aliases: ["ls"]
    )
    @OptionGroup var quieting: QuietOption
    @Flag(help: "Print one JSON object per line.")
    var json = false

    func run() throws {
        for label in try TLSIdentity.labels(in: Identities.store) {
            let leaf = try Identities.labelled(label).certs[0]
            let end = leaf.notValidAfter.formatted(.iso8601)
            if json {
                try Output.standard.line([
                    "label": .string(label), "sha256": .string(leaf.fingerprint), "until": .string(end),
                    "subject": .string(leaf.subject),
                ])
            } else {
                try Output.standard.fields(label, leaf.fingerprint, end, leaf.subject)
            }
        }
        try Output.standard.flush()
    }
}

struct ShowIdentity: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show an identity's certificates as JSON, its own first."
    )
    @Argument(help: "Its label.", completion: .identityLabel) var label: String
    @OptionGroup var quieting: QuietOption
    func run() throws {
        for certificate in try Identities.labelled(label).certs {
            try Output.standard.line([
                "subject": .string(certificate.subject), "issuer": .string(certificate.issuer),
                "from": .string(certificate.notValidBefore.formatted(.iso8601)),
                "until": .string(certificate.notValidAfter.formatted(.iso8601)),
                "sha256": .string(certificate.fingerprint), "selfSigned": .bool(certificate.isSelfSigned),
            ])
        }
        try Output.standard.flush()
    }
}

struct DeleteIdentity: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete",
        abstract: "Remove an identity.",
        aliases: ["rm"]
    )
    @Argument(help: "Its label.", completion: .identityLabel) var label: String
    @OptionGroup var quieting: QuietOption
    func run() throws {
        // A damaged one can be removed, too.
        let found = Result { try TLSIdentity.identity(withLabel: label, in: Identities.store) }
        if case .success(nil) = found { _ = try Identities.labelled(label) }
        try TLSIdentity.deleteIdentity(withLabel: label, in: Identities.store)
    }
}

struct ImportIdentity: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Import an identity from PEM files or a PKCS#12 file.",
        discussion: "Set LOVESEAT_IDENTITY_PASSWORD to the password of an encrypted key."
    )
    @Argument(help: "The label under which to store it.") var label: String
    @OptionGroup var quieting: QuietOption
    @Argument(help: "The file: .p12, or PEM with the certificates.", completion: .file()) var file: String
    @Option(help: "The PEM file with the key, if it is a separate one.", completion: .file()) var key: String?
    func run() throws {
        try Identities.require(unused: label)
        _ = try Identities.read(certificates: file, key: key, label: label)
    }
}

struct ExportIdentity: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Print an identity's certificates as PEM.",
        discussion: "With --key, also print the key, encrypted with LOVESEAT_PASSPHRASE if that is set."
    )
    @Argument(help: "Its label.", completion: .identityLabel) var label: String
    @OptionGroup var quieting: QuietOption
    @Flag(help: "Print the private key, too.") var key = false
    func run() throws {
        let identity = try Identities.labelled(label)
        let passphrase = ProcessInfo.processInfo.environment["LOVESEAT_PASSPHRASE"]
        let text = key ? try identity.pem(passphrase: passphrase) : identity.certs.map(\.pem).joined()
        try Output.standard.raw(text.utf8)
        try Output.standard.flush()
    }
}
