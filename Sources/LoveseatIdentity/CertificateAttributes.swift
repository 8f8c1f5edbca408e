import Foundation
import LoveseatModel
import SwiftASN1
import X509

/// The name of the certificate's owner. Every certificate has one.
public let certAttrCommonName = "CN"
/// The owner's organisation.
public let certAttrOrganization = "O"
/// The part of the organisation.
public let certAttrOrganizationUnit = "OU"
/// The town.
public let certAttrLocality = "L"
/// The state or province.
public let certAttrStateOrProvince = "ST"
/// The country, in two letters.
public let certAttrCountry = "C"
/// Mail addresses, with commas in between.
public let certAttrEmailAddress = "rfc822Name"
/// Host names that the certificate is for, with commas in between. `*.example.org` stands for every name below.
public let certAttrHostname = "dNSName"
/// IPv4 and IPv6 addresses that the certificate is for, with commas in between.
public let certAttrIPAddress = "iPAddress"
/// URLs, with commas in between.
public let certAttrURL = "uniformResourceIdentifier"

/// Who a certificate is for, in X.509's terms.
struct CertificateAttributes {
    let subject: DistinguishedName
    let alternativeNames: [GeneralName]

    init(_ attributes: [String: String]) throws(LoveseatError) {
        var attributes = attributes
        func take(_ key: String) -> String? { attributes.removeValue(forKey: key) }
        func list(_ key: String) -> [String] {
            (take(key) ?? "").split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
        }
        guard let name = take(certAttrCommonName), !name.isEmpty, name.unicodeScalars.count <= 64 else {
            throw LoveseatError(
                .crypto,
                "a certificate needs a common name of 1 to 64 characters: set certAttrCommonName"
            )
        }
        let (unit, organization) = (take(certAttrOrganizationUnit), take(certAttrOrganization))
        let (locality, state) = (take(certAttrLocality), take(certAttrStateOrProvince))
        let country = take(certAttrCountry)
        guard country == nil || country?.utf8.count == 2 else {
            throw LoveseatError(.crypto, "a country is two letters, not \"\(country ?? "")\"")
        }
        do {
            subject = try DistinguishedName {
                CommonName(name)
                if let unit { OrganizationalUnitName(unit) }
                if let organization { OrganizationName(organization) }
                if let locality { LocalityName(locality) }
                if let state { StateOrProvinceName(state) }
                if let country { CountryName(country) }
            }
        } catch { throw LoveseatError(.crypto, "these attributes make no certificate: \(error)") }
        var names = list(certAttrHostname).map { GeneralName.dnsName($0) }
        for text in list(certAttrIPAddress) {
            guard let bytes = IPAddress.bytes(text) else {
                throw LoveseatError(.crypto, "\"\(text)\" is no IP address")
            }
            names.append(.ipAddress(ASN1OctetString(contentBytes: bytes[...])))
        }
        names += list(certAttrEmailAddress).map { GeneralName.rfc822Name($0) }
        names += list(certAttrURL).map { GeneralName.uniformResourceIdentifier($0) }
        alternativeNames = names
        if let unknown = attributes.keys.sorted().first {
            throw LoveseatError(.crypto, "there is no certificate attribute \"\(unknown)\"")
        }
    }
}
