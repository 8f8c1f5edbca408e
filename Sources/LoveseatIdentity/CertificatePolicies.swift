import Foundation
import SwiftASN1
import X509

/// Checks a chain to a pinned certificate: every issuer must be an authority, and everything below the pinned certificate must be
/// valid today. Signatures are checked by the verifier. The host's name and the pin's own expiration do not count.
struct PinnedRootPolicy: VerifierPolicy {
    let verifyingCriticalExtensions: [ASN1ObjectIdentifier] = [
        .X509ExtensionID.basicConstraints, .X509ExtensionID.keyUsage, .X509ExtensionID.extendedKeyUsage,
        .X509ExtensionID.subjectAlternativeName,
    ]

    func chainMeetsPolicyRequirements(chain: UnverifiedCertificateChain) async -> PolicyEvaluationResult {
        let now = Date()
        for (place, certificate) in chain.enumerated() {
            let isRoot = place == chain.count - 1
            guard isRoot || certificate.isValid(at: now) else {
                return .failsToMeetPolicy(reason: "\(certificate.subject) is not valid today")
            }
            guard place == 0 || Self.mayIssue(certificate, authoritiesBelow: place - 1) else {
                return .failsToMeetPolicy(reason: "\(certificate.subject) is not an authority")
            }
        }
        return .meetsPolicy
    }

    private static func mayIssue(_ certificate: Certificate, authoritiesBelow: Int) -> Bool {
        // An extension that cannot be read makes no authority.
        guard case .isCertificateAuthority(let limit)? = try? certificate.extensions.basicConstraints,
            limit.map({ authoritiesBelow <= $0 }) ?? true
        else { return false }
        do { return try certificate.extensions.keyUsage?.keyCertSign ?? true } catch { return false }
    }
}

/// Refuses wildcards other than the whole first label of a name below a domain: `*` alone, `*.org`, and `a*.example.org`.
/// Complements X509's own check of names, which accepts them, and takes the common name of a certificate without alternative names.
struct WildcardPolicy: VerifierPolicy {
    /// Nil for an address, which no name matches.
    let host: String?
    let verifyingCriticalExtensions: [ASN1ObjectIdentifier] = []

    func chainMeetsPolicyRequirements(chain: UnverifiedCertificateChain) async -> PolicyEvaluationResult {
        guard let host else { return .meetsPolicy }
        return chain.leaf.serverNames.contains { ServerName.matches($0, host) }
            ? .meetsPolicy : .failsToMeetPolicy(reason: "it is not for \(host)")
    }
}

/// Requires that certificates that name what they are for name what they are used for: the peer's own one, and those of its issuers
/// below the root. An authority that issues certificates to clients must not thereby make servers of them.
struct UsagePolicy: VerifierPolicy {
    let usage: ExtendedKeyUsage.Usage
    let verifyingCriticalExtensions: [ASN1ObjectIdentifier] = [.X509ExtensionID.extendedKeyUsage]

    static let server = UsagePolicy(usage: .serverAuth)
    static let client = UsagePolicy(usage: .clientAuth)

    func chainMeetsPolicyRequirements(chain: UnverifiedCertificateChain) async -> PolicyEvaluationResult {
        for certificate in chain.prefix(max(1, chain.count - 1)) where !allows(certificate) {
            return .failsToMeetPolicy(
                reason:
                    "\(certificate.subject) is not for TLS \(usage == .serverAuth ? "servers" : "clients")"
            )
        }
        return .meetsPolicy
    }

    private func allows(_ certificate: Certificate) -> Bool {
        // An extension that cannot be read allows nothing.
        do {
            guard let usages = try certificate.extensions.extendedKeyUsage else { return true }
            return usages.contains(usage) || usages.contains(.any)
        } catch { return false }
    }
}

extension Certificate {
    /// Whether a time is within the certificate's dates. One whose dates are reversed is never valid, and its dates make no range.
    func isValid(at time: Date) -> Bool { notValidBefore <= time && time <= notValidAfter }

    /// The DNS names that the certificate is for. The common name is not one: authorities do not verify that it is a host.
    var serverNames: [String] {
        // Names that cannot be read match no host.
        ((try? extensions.subjectAlternativeNames)?.map { Array($0) } ?? []).compactMap { name in
            guard case .dnsName(let name) = name else { return nil }
            return name
        }
    }
}

/// Names of hosts, as certificates have them.
package enum ServerName {
    /// Whether a name, or a pattern whose first label is a wildcard, is that of a host.
    package static func matches(_ pattern: String, _ host: String) -> Bool {
        if normalized(pattern) == normalized(host) { return true }
        let pattern = normalized(pattern).split(separator: ".", omittingEmptySubsequences: false)
        let host = normalized(host).split(separator: ".", omittingEmptySubsequences: false)
        return pattern.count >= 3 && pattern.count == host.count && pattern[0] == "*"
            && !host[0].isEmpty && pattern.dropFirst() == host.dropFirst()
            && !pattern.dropFirst().contains { $0.isEmpty || $0.contains("*") }
    }

    /// Whether a text is written like the name of a host, or like a pattern of some.
    package static func isName(_ text: String) -> Bool {
        let labels = normalized(text).split(separator: ".", omittingEmptySubsequences: false)
        return text.utf8.count <= 253
            && labels.allSatisfy { label in
                (1...63).contains(label.utf8.count)
                    && label.unicodeScalars.allSatisfy {
                        ("a"..."z").contains($0) || ("0"..."9").contains($0)
                            || "-_*".unicodeScalars.contains($0)
                    }
            }
    }

    /// Whether there is a host that a name or pattern matches. `*` and `*.org` match none, nor does a wildcard elsewhere.
    package static func canMatch(_ pattern: String) -> Bool {
        let example = pattern.hasPrefix("*") ? "a" + pattern.dropFirst() : pattern
        return isName(pattern) && !example.contains("*") && matches(pattern, example)
    }

    private static func normalized(_ name: String) -> String {
        let name = name.lowercased()
        return name.hasSuffix(".") ? String(name.dropLast()) : name
    }
}
