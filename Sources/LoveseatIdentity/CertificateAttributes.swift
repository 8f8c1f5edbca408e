import Foundation
import LoveseatModel
import SwiftASN1
import X509

/// The key of the common name in a certificate's attributes: the owner's name, 1 to 64 characters. It is required.
public let certAttrCommonName = "CN"
/// The key of the owner's pseudonym in a certificate's attributes.
public let certAttrPseudonym = "pseudonym"
/// The key of the owner's given name in a certificate's attributes.
public let certAttrGivenName = "GN"
/// The key of the owner's family name in a certificate's attributes.
public let certAttrSurname = "SN"
/// The key of the owner's organisation in a certificate's attributes.
public let certAttrOrganization = "O"
/// The key of the organisation's unit in a certificate's attributes.
public let certAttrOrganizationUnit = "OU"
/// The key of the owner's postal address in a certificate's attributes.
public let certAttrPostalAddress = "postalAddress"
/// The key of the postal code in a certificate's attributes.
public let certAttrPostalCode = "postalCode"
/// The key of the town in a certificate's attributes.
public let certAttrLocality = "L"
/// The key of the state or province in a certificate's attributes.
public let certAttrStateOrProvince = "ST"
/// The key of the country in a certificate's attributes, as two letters.
public let certAttrCountry = "C"
/// The key of mail addresses in a certificate's attributes, separated by commas.
public let certAttrEmailAddress = "rfc822Name"
/// The key of the host names that a certificate is for, separated by commas. `*.example.org` matches every name one level below.
public let certAttrHostname = "dNSName"
/// The key of the IPv4 and IPv6 addresses that a certificate is for, separated by commas.
public let certAttrIPAddress = "iPAddress"
/// The key of URLs in a certificate's attributes, separated by commas.
public let certAttrURL = "uniformResourceIdentifier"
/// The key of registered IDs in a certificate's attributes: object identifiers such as `1.3.6.1.4.1.32473`, separated by commas.
public let certAttrRegisteredID = "registeredID"

/// The owner of a certificate, as X.509 names it.
struct CertificateAttributes {
    let subject: DistinguishedName
    let alternativeNames: [GeneralName]

    /// Attributes of the owner's name that the library has no types for (ITU-T X.520).
    private static let otherNames: [(key: String, type: ASN1ObjectIdentifier)] = [
        (certAttrPseudonym, [2, 5, 4, 65]), (certAttrGivenName, [2, 5, 4, 42]),
        (certAttrSurname, [2, 5, 4, 4]),
        (certAttrPostalAddress, [2, 5, 4, 16]), (certAttrPostalCode, [2, 5, 4, 17]),
    ]

    private struct OtherName: RelativeDistinguishedNameConvertible {
        let type: ASN1ObjectIdentifier
        let text: String

        func makeRDN() -> RelativeDistinguishedName {
            RelativeDistinguishedName(.init(type: type, utf8String: text))
        }
    }

    private static func objectIdentifier(_ text: String) throws(LoveseatError) -> ASN1ObjectIdentifier {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false).map { UInt32($0) }
        // The first two parts share a number.
        guard parts.count >= 2, let first = parts[0], let second = parts[1], first <= 2,
            first == 2 || second < 40,
            !parts.contains(nil), let identifier = try? ASN1ObjectIdentifier(dotRepresentation: text[...])
        else {
            throw LoveseatError(
                .invalidParameter,
                "\"\(text)\" is not a registered ID: write an object identifier, such as 1.3.6.1.4.1.32473"
            )
        }
        return identifier
    }

    /// The owner's name. `remove`: takes an attribute.
    private static func subject(_ remove: (String) -> String?) throws(LoveseatError) -> DistinguishedName {
        guard let name = remove(certAttrCommonName), !name.isEmpty, name.unicodeScalars.count <= 64 else {
            throw LoveseatError(
                .crypto,
                "a certificate needs a common name of 1 to 64 characters: set certAttrCommonName"
            )
        }
        let (unit, organization) = (remove(certAttrOrganizationUnit), remove(certAttrOrganization))
        let (locality, state) = (remove(certAttrLocality), remove(certAttrStateOrProvince))
        let country = remove(certAttrCountry)
        let others = otherNames.compactMap { name in
            remove(name.key).map { OtherName(type: name.type, text: $0) }
        }
        guard country == nil || country?.utf8.count == 2 else {
            throw LoveseatError(.crypto, "the country \"\(country ?? "")\" is not valid: use two letters")
        }
        do {
            return try DistinguishedName {
                CommonName(name)
                if let unit { OrganizationalUnitName(unit) }
                if let organization { OrganizationName(organization) }
                if let locality { LocalityName(locality) }
                if let state { StateOrProvinceName(state) }
                if let country { CountryName(country) }
                for other in others { other }
            }
        } catch { throw LoveseatError(.crypto, "a certificate cannot have these attributes: \(error)") }
    }

    init(_ attributes: [String: String]) throws(LoveseatError) {
        var attributes = attributes
        func remove(_ key: String) -> String? { attributes.removeValue(forKey: key) }
        func list(_ key: String) -> [String] {
            (remove(key) ?? "").split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
        }
        subject = try Self.subject(remove)
        /// Certificates have these texts in ASCII.
        func ascii(_ key: String, _ advice: String) throws(LoveseatError) -> [String] {
            let all = list(key)
            if let other = all.first(where: {
                !$0.utf8.allSatisfy { (0x21...0x7E).contains($0) } || $0.isEmpty
            }) {
                throw LoveseatError(.invalidParameter, "a certificate cannot be for \"\(other)\": \(advice)")
            }
            return all
        }
        let hosts = try ascii(
            certAttrHostname,
            "write a host name in ASCII, without blanks, as in xn--mnchen-3ya.example (Punycode) for münchen.example"
        )
        if let other = hosts.first(where: { !ServerName.isName($0) }) {
            throw LoveseatError(
                .invalidParameter,
                "a certificate cannot be for \"\(other)\": write a host name, such as kiosk.local or *.example.com"
            )
        }
        var names = hosts.map { GeneralName.dnsName($0) }
        for text in list(certAttrIPAddress) {
            guard let bytes = IPAddress.bytes(text) else {
                throw LoveseatError(.invalidParameter, "\"\(text)\" is not an IP address")
            }
            names.append(.ipAddress(ASN1OctetString(contentBytes: bytes[...])))
        }
        names += try ascii(certAttrEmailAddress, "write a mail address in ASCII").map {
            GeneralName.rfc822Name($0)
        }
        names += try ascii(certAttrURL, "write a URL in ASCII, with % for other characters").map {
            GeneralName.uniformResourceIdentifier($0)
        }
        for text in list(certAttrRegisteredID) {
            names.append(.registeredID(try Self.objectIdentifier(text)))
        }
        alternativeNames = names
        if let unknown = attributes.keys.sorted().first {
            throw LoveseatError(.crypto, "there is no certificate attribute \"\(unknown)\"")
        }
    }
}
