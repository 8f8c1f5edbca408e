import Crypto
import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatNetwork
import NIOHTTP1
import Synchronization

/// How a client authenticates to a remote: Basic at once, and what the remote asks for after that (protocol/couchdb.md §7).
final class RemoteLogin: Sendable {
    /// The next step after an answer 401.
    enum Next: Sendable {
        /// The same request again, with other headers.
        case again
        /// A session, and then the same request again.
        case session(username: String, password: String)
        case giveUp
    }

    private enum Mode: Sendable {
        /// The user name and password, if there are any, in each request.
        case basic
        case digest(DigestAuthentication.Challenge, count: UInt32)
        /// The cookie of a session.
        case session
    }

    private let credentials: BasicAuthenticator?
    private let mode = Mutex(Mode.basic)

    init(_ options: ConnectionOptions) {
        credentials = options.credentials ?? options.authenticator as? BasicAuthenticator
    }

    /// The value of the `Authorization` header; nil for none.
    func authorization(method: String, target: String) -> String? {
        guard let credentials else { return nil }
        return mode.withLock { mode in
            switch mode {
            case .basic: return UpgradeHeaders.basic(credentials.username, credentials.password)
            case .session: return nil
            case .digest(let challenge, let count):
                mode = .digest(challenge, count: count + 1)
                let secret = DigestAuthentication.secret(
                    username: credentials.username,
                    realm: challenge.realm,
                    password: credentials.password,
                    challenge.algorithm,
                    Self.hash
                )
                return DigestAuthentication.Response(
                    to: challenge,
                    username: credentials.username,
                    secret: secret,
                    method: method,
                    target: target,
                    count: count,
                    clientNonce: (0..<16).map { _ in UInt8.random(in: 0...255) }.hexadecimalText,
                    Self.hash
                ).header
            }
        }
    }

    private static let hash: DigestAuthentication.Hash = { algorithm, bytes in
        switch algorithm {
        case .md5: Array(Insecure.MD5.hash(data: bytes))
        case .sha256: Array(SHA256.hash(data: bytes))
        }
    }

    /// `attempt`: how many answers 401 this request has had.
    func next(after headers: HTTPHeaders, attempt: Int) -> Next {
        guard let credentials, attempt <= 2 else { return .giveUp }
        let challenges = headers["WWW-Authenticate"].compactMap { DigestAuthentication.Challenge($0) }
        let best = challenges.first { $0.algorithm == .sha256 } ?? challenges.first
        return mode.withLock { mode in
            if let best {
                // The same challenge again means that the password is wrong, unless only the nonce was too old.
                if case .digest = mode, attempt > 1, !best.isStale { return .giveUp }
                mode = .digest(best, count: 1)
                return .again
            }
            guard attempt == 1 else { return .giveUp }
            return .session(username: credentials.username, password: credentials.password)
        }
    }

    /// The remote has given a session.
    func beginSession() { mode.withLock { $0 = .session } }
}
