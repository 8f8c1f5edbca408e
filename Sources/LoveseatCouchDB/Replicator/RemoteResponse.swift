package import AsyncHTTPClient
import Foundation
import LoveseatCore
package import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatNetwork
import LoveseatStorage
import NIOCore
package import NIOHTTP1

/// An answer whose body has not been read.
package struct RemoteResponse: Sendable {
    package let status: Int
    package let headers: HTTPHeaders
    package let body: HTTPClientResponse.Body

    /// The whole body.
    ///
    /// - Throws: `remoteError` if it is longer.
    package func bytes(limit: Int) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        do {
            for try await part in body {
                bytes.append(contentsOf: part.readableBytesView)
                guard bytes.count <= limit else { throw AnswerTooLarge(limit: limit) }
            }
        } catch let error as AnswerTooLarge { throw error } catch { throw LoveseatError(http: error) }
        return bytes
    }

    /// Seconds for which the server asks not to be asked again; nil if it does not say so.
    package var retryAfter: UInt? {
        headers.first(name: "Retry-After").flatMap {
            CookieDate.delay($0, now: Int64(Date().timeIntervalSince1970))
        }
    }

    /// The error that the answer reports; of its body only the beginning is read.
    package func failure() async -> RemoteFailure {
        var bytes: [UInt8] = []
        var parts = body.makeAsyncIterator()
        // If the connection breaks inside the body, the status and what came say enough.
        while bytes.count < Self.maximumFailure, let part = try? await parts.next() {
            bytes.append(contentsOf: part.readableBytesView.prefix(Self.maximumFailure - bytes.count))
        }
        return RemoteFailure(status: status, body: bytes, retryAfter: retryAfter)
    }

    /// How much is read of an answer that reports an error, in bytes.
    private static let maximumFailure = 64 << 10
}

/// An answer that is longer than anything that is held in memory.
package struct AnswerTooLarge: Error {
    package let limit: Int

    var failure: LoveseatError {
        LoveseatError(.remoteError, "the peer's answer is longer than \(limit.counted("byte"))")
    }
}

/// An answer that is not JSON.
struct UnreadableAnswer: Error {
    /// The request, in words.
    let what: String
    let error: JSONError
    let bytes: [UInt8]

    /// Whether it is an object that is damaged, rather than something else.
    var isObject: Bool { first == UInt8(ascii: "{") }

    private var first: UInt8? { bytes.first { ![0x20, 0x09, 0x0A, 0x0D].contains($0) } }

    var failure: LoveseatError {
        if bytes.starts(with: UpgradeRequestValidator.databaseText.utf8) {
            return LoveseatError(
                .unsupported,
                "the peer does not speak CouchDB's protocol at this URL, but Couchbase's: use a ws:// or wss:// URL, or let it serve CouchDB's wire"
            )
        }
        let isMarkup = first == UInt8(ascii: "<")
        return LoveseatError(
            .remoteError,
            "the peer's answer to \(what) is \(isMarkup ? "a web page, and not JSON: is the URL that of a CouchDB database?" : "not JSON: \(error)")"
        )
    }
}

extension LoveseatError {
    /// Converts an error of the HTTP client.
    init(http error: any Error, _ target: WebSocketAddress? = nil) {
        let place = target.map { "\($0.host):\($0.port)" } ?? "the peer"
        switch error {
        case let error as LoveseatError: self = error
        case HTTPParserError.invalidEOFState:
            self.init(.webSocketAbnormalClose, "the connection ended inside the answer of \(place)")
        case is HTTPParserError:
            self.init(.remoteError, "the answer of \(place) is not valid HTTP: \(error)")
        case let error as HTTPClientError:
            switch error {
            case .connectTimeout, .readTimeout, .writeTimeout, .deadlineExceeded,
                .getConnectionFromPoolTimeout:
                self.init(.timeout, "\(place) does not answer")
            case .proxyAuthenticationRequired:
                self.init(.httpProxyAuthRequired, "the proxy requires a user name and password")
            case .invalidProxyResponse:
                self.init(.webSocketAbnormalClose, "the proxy refused to connect to \(place)")
            default: self.init(.webSocketAbnormalClose, "the connection broke: \(error)")
            }
        default:
            // Code that reads an answer may write to the disk, and fail there.
            let stored = LoveseatError(storage: error)
            guard stored.code == .unexpectedError else {
                self = stored
                return
            }
            let failure = LoveseatError(network: error)
            self = error is IOError && failure.isRefusedConnection ? failure.connecting(to: place) : failure
        }
    }
}
