import Crypto
import Foundation
import HTTPTypes
import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatNetwork
import NIOConcurrencyHelpers

/// Digest authentication of a listener (RFC 7616): a hash of the password and of the request travels, and the password does not.
final class DigestLogin: Sendable {
    let authenticator: ListenerPasswordAuthenticator
    private let nonces: NIOLockedValueBox<DigestNonces>

    init(_ authenticator: ListenerPasswordAuthenticator) {
        self.authenticator = authenticator
        let key = SymmetricKey(size: .bits256)
        nonces = NIOLockedValueBox(
            DigestNonces { Array(HMAC<SHA256>.authenticationCode(for: $0, using: key)) }
        )
    }

    static let hash: DigestAuthentication.Hash = { algorithm, bytes in
        switch algorithm {
        case .md5: Array(Insecure.MD5.hash(data: bytes))
        case .sha256: Array(SHA256.hash(data: bytes))
        }
    }

    private static var now: Double { ProcessInfo.processInfo.systemUptime }

    /// The headers of a 401, the strongest algorithm first.
    func challenges(isStale: Bool = false) -> [[String]] {
        let random = (0..<12).map { _ in UInt8.random(in: 0...255) }
        let nonce = nonces.withLockedValue { $0.make(random: random, now: Self.now) }
        return DigestAuthentication.Algorithm.allCases.map { algorithm in
            var challenge = DigestAuthentication.Challenge(
                realm: authenticator.realm,
                nonce: nonce,
                algorithm: algorithm
            )
            challenge.isStale = isStale
            return ["WWW-Authenticate", challenge.header]
        }
    }

    /// Whether a client knows a user's password.
    func proves(_ response: DigestAuthentication.Response, method: String) async -> Bool {
        guard response.realm.isExactly(authenticator.realm) else { return false }
        let secret: String?
        switch await authenticator.secret?(response.username) {
        case nil: return false
        case .password(let password):
            secret = DigestAuthentication.secret(
                username: response.username,
                realm: response.realm,
                password: password,
                response.algorithm,
                Self.hash
            )
        case .hashes(let md5, let sha256): secret = response.algorithm == .md5 ? md5 : sha256
        }
        guard let secret else { return false }
        return ListenerPasswordAuthenticator.isEqual(
            response.expectedProof(secret: secret, method: method, Self.hash),
            response.proof
        )
    }

    /// Uses a nonce once more; false for one that cannot be used any more.
    func use(_ response: DigestAuthentication.Response) -> Bool {
        nonces.withLockedValue {
            $0.use(response.nonce, count: response.count, now: Self.now) == .accepted
        }
    }
}

extension RequestAuthentication {
    /// The `WWW-Authenticate` headers of a 401.
    func challenges(isStale: Bool = false) -> [[String]] {
        let basic = ["WWW-Authenticate", "Basic realm=\"Loveseat\", charset=\"UTF-8\""]
        return (digest?.challenges(isStale: isStale) ?? []) + (allowsBasic ? [basic] : [])
    }

    /// - Throws: `unauthorized` for a password that came unencrypted where that is not allowed.
    func refuseBasic(_ exchange: Exchange) throws(CouchDBError) {
        // Over TLS passwords may come as they are, and a client may send no password, or its proof by Digest.
        guard isRequired, !allowsBasic, let header = exchange.headers[.authorization],
            header.lowercased().hasPrefix("basic ")
        else { return }
        throw CouchDBError(401, "unauthorized", "without TLS this listener accepts Digest, not Basic")
    }

    /// Authenticates a request with Digest.
    ///
    /// - Throws: `unauthorized`; `bad_request` for a header that belongs to another request; `too_many_requests`.
    func logIn(
        _ authorization: String,
        _ digest: DigestLogin,
        _ exchange: Exchange,
        _ address: String,
        _ shown: ShownCertificates?
    ) async throws -> PeerIdentity {
        guard let response = DigestAuthentication.Response(authorization) else {
            throw CouchDBError(401, "unauthorized", "the Digest header lacks something: qop=auth is needed")
        }
        guard exchange.isTarget(response.target) else {
            throw CouchDBError.badRequest("the uri of the Digest header is not that of the request")
        }
        // An empty value is an unknown user or a wrong password.
        _ = try await authenticator.attempt(address: address, user: response.username) {
            await digest.proves(response, method: exchange.sentMethod) ? true : nil
        }
        guard digest.use(response) else {
            var error = CouchDBError(401, "unauthorized", "the nonce was used or is too old: use the new one")
            error.headers = challenges(isStale: true)
            throw error
        }
        return PeerIdentity(
            username: response.username,
            certificates: shown?.outcome.certificates ?? [],
            address: address
        )
    }
}
