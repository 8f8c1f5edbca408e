import ArgumentParser
import Foundation
import Loveseat

struct Identity: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Make, list, import and export keys with their certificates.",
        discussion: """
            They are kept in ~/.local/share/loveseat/identities, or in the folder that LOVESEAT_IDENTITIES names. If \
            LOVESEAT_PASSPHRASE is set their keys are encrypted with it.
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
        abstract: "Make a key and a certificate.",
        discussion:
            "EXAMPLE: loveseat identity create kiosk --dns kiosk.local --ip 192.168.1.7 --issuer our-ca"
    )
    @Argument(help: "The label to keep it under.") var label: String
    @Option(help: "The owner's name; the label if none is given.") var commonName: String?
    @Option(help: "The owner's organisation.") var organization: String?
    @Option(help: "Host names it is for, with commas in between.") var dns: String?
    @Option(help: "IP addresses it is for, with commas in between.") var ip: String?
    @Option(help: "Days until it expires.") var days = 365
    @Option(help: "The label of the authority that signs it; its own key if none is named.") var issuer:
        String?
    @Flag(help: "Make an authority, which signs others.") var ca = false

    func run() throws {
        guard (1...36_500).contains(days) else {
            throw LoveseatError(.invalidParameter, "--days is 1 to 36500, not \(days)")
        }
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
        abstract: "List them: label, fingerprint, expiration and subject."
    )
    func run() throws {
        for label in try TLSIdentity.labels(in: Identities.store) {
            let leaf = try Identities.labelled(label).certs[0]
            try Output.standard.fields(
                label,
                leaf.fingerprint,
                leaf.notValidAfter.formatted(.iso8601),
                leaf.subject
            )
        }
        try Output.standard.flush()
    }
}

struct ShowIdentity: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show the certificates of one, its own first, as JSON."
    )
    @Argument(help: "Its label.") var label: String
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
    static let configuration = CommandConfiguration(commandName: "delete", abstract: "Remove an identity.")
    @Argument(help: "Its label.") var label: String
    func run() throws { try TLSIdentity.deleteIdentity(withLabel: label, in: Identities.store) }
}

struct ImportIdentity: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Import an identity from PEM files or a PKCS#12 file.",
        discussion: "LOVESEAT_IDENTITY_PASSWORD has the password of an encrypted key."
    )
    @Argument(help: "The label to keep it under.") var label: String
    @Argument(help: "The file: .p12, or PEM with the certificates.") var file: String
    @Option(help: "The PEM file with the key, if it is another one.") var key: String?
    func run() throws { _ = try Identities.read(certificates: file, key: key, label: label) }
}

struct ExportIdentity: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Print the certificates of one in PEM.",
        discussion: "With --key the key too, encrypted with LOVESEAT_PASSPHRASE if that is set."
    )
    @Argument(help: "Its label.") var label: String
    @Flag(help: "With the private key.") var key = false
    func run() throws {
        let identity = try Identities.labelled(label)
        let passphrase = ProcessInfo.processInfo.environment["LOVESEAT_PASSPHRASE"]
        let text = key ? try identity.pem(passphrase: passphrase) : identity.certs.map(\.pem).joined()
        try Output.standard.raw(text.utf8)
        try Output.standard.flush()
    }
}
