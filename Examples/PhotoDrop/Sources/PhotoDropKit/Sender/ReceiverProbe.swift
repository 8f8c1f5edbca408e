import Crypto
import Foundation
import NIOCore
import NIOPosix
import NIOSSL
import NIOTLS
import PhotoDropCore

/// Finds out at which of a code's URLs the receiver is. Nothing secret is sent.
package enum ReceiverProbe {
    /// A receiver whose certificate has the pin of the code.
    package struct Found: Hashable, Sendable {
        package let url: URL
        /// The whole fingerprint of the certificate: 64 hexadecimal digits.
        package let fingerprint: String
    }

    private enum Failure: Error, Hashable {
        case wrongCertificate
        case refused(String)
        case unreachable(String)
    }

    private static let timeout = TimeAmount.seconds(4)
    /// How long the first URL is tried alone.
    private static let headStart = Duration.milliseconds(250)

    /// Connects to the code's URLs, each a little later than the one before, and returns the first that answers.
    ///
    /// - Throws: `refused` if another device answers, or nobody listens there any more; `unreachable` if nothing answers.
    package static func find(_ code: DropCode) async throws(DropError) -> Found {
        let attempts = await withTaskGroup(of: (URL, Result<String, Failure>).self) { group in
            for (index, url) in code.urls.enumerated() {
                group.addTask {
                    if index > 0 { try? await Task.sleep(for: headStart * index) }
                    return (url, await attempt(url, code.pin))
                }
            }
            var failures: [(URL, Failure)] = []
            for await (url, result) in group {
                switch result {
                case .success(let fingerprint):
                    group.cancelAll()
                    return (found: Found?.some(Found(url: url, fingerprint: fingerprint)), failures: failures)
                case .failure(let failure): failures.append((url, failure))
                }
            }
            return (found: nil, failures: failures)
        }
        if let found = attempts.found { return found }
        throw error(attempts.failures, receiver: code.name, isSession: true)
    }

    /// Connects to a receiver without encryption, and disconnects.
    ///
    /// - Throws: `unreachable` if that is not possible.
    package static func check(_ url: URL) async throws(DropError) {
        switch await attempt(url, nil) {
        case .success: return
        case .failure(let failure): throw error([(url, failure)], receiver: nil, isSession: false)
        }
    }

    private static func error(
        _ failures: [(url: URL, failure: Failure)],
        receiver: String?,
        isSession: Bool
    ) -> DropError {
        if failures.contains(where: { $0.failure == .wrongCertificate }) {
            return DropError(.refused, "this is not the device that showed the code: ask for a new code")
        }
        let isRefused = failures.allSatisfy { if case .refused = $0.failure { true } else { false } }
        let advice =
            isRefused
            ? "nobody receives photos there now, so ask for a new code" : "is it on the same network?"
        let name = receiver ?? "the receiver"
        let reasons = failures.map { url, failure in
            let address = "\(url.host(percentEncoded: false) ?? ""):\(url.port ?? 80)"
            switch failure {
            case .refused(let text), .unreachable(let text): return "\(address): \(text)"
            case .wrongCertificate: return address
            }
        }
        // A receiver that shows a code and does not listen any more has ended the session (photodrop.md §16, test 5).
        var error = DropError(
            isRefused && isSession ? .refused : .unreachable,
            "cannot reach \(name) (\(reasons.joined(separator: "; "))): \(advice)"
        )
        error.mayPass = true
        return error
    }

    /// Connects, and returns the fingerprint of the certificate. `pin`: nil to connect without encryption; the result is then empty.
    private static func attempt(_ url: URL, _ pin: DropPin?) async -> Result<String, Failure> {
        guard let host = url.host(percentEncoded: false), let port = url.port ?? (pin == nil ? 80 : nil)
        else {
            return .failure(.unreachable("not a valid address"))
        }
        let bare = host.trimmingCharacters(in: ["[", "]"])
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let outcome = loop.makePromise(of: String.self)
        let deadline = loop.scheduleTask(in: timeout) { outcome.fail(Failure.unreachable("no answer")) }
        let connecting = ClientBootstrap(group: loop)
            .connectTimeout(timeout)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    guard let pin else { return }
                    try channel.pipeline.syncOperations.addHandlers(handlers(pin, outcome))
                }
            }
            .connect(host: bare, port: port)
        connecting.whenFailure { outcome.fail(failure($0)) }
        if pin == nil { connecting.whenSuccess { _ in outcome.succeed("") } }
        outcome.futureResult.whenComplete { _ in
            deadline.cancel()
            connecting.whenSuccess { $0.close(promise: nil) }
        }
        do {
            let fingerprint = try await withTaskCancellationHandler {
                try await outcome.futureResult.get()
            } onCancel: {
                outcome.fail(CancellationError())
            }
            return .success(fingerprint)
        } catch { return .failure(error as? Failure ?? failure(error)) }
    }

    private static func handlers(_ pin: DropPin, _ outcome: EventLoopPromise<String>) throws
        -> [any ChannelHandler]
    {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.minimumTLSVersion = .tlsv12
        configuration.certificateVerification = .noHostnameVerification
        configuration.trustRoots = .certificates([])
        let context = try NIOSSLContext(configuration: configuration)
        let tls = try NIOSSLClientHandler(context: context, serverHostname: nil) { chain, answer in
            let bytes = (try? chain.first?.toDERBytes()) ?? []
            let fingerprint = TextCoding.hexadecimal(SHA256.hash(data: bytes))
            let matches = pin.matches(fingerprint: fingerprint)
            if matches {
                outcome.succeed(fingerprint)
            } else {
                outcome.fail(Failure.wrongCertificate)
            }
            answer.succeed(matches ? .certificateVerified : .failed)
        }
        return [tls, ProbeEnd(outcome)]
    }

    private static func failure(_ error: any Error) -> Failure {
        let text = reason(error)
        let isRefused = text.contains("Connection refused")
        return isRefused ? .refused("connection refused") : .unreachable(text)
    }

    private static func reason(_ error: any Error) -> String {
        switch error {
        case let error as NIOConnectionError:
            if let first = error.connectionErrors.first { return reason(first.error) }
            return "the name is not known"
        case let error as IOError: return String(cString: strerror(error.errnoCode))
        case is ChannelError: return "no answer"
        default: return "\(error)"
        }
    }

    /// Reports a connection that ends before the handshake is done.
    private final class ProbeEnd: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private let outcome: EventLoopPromise<String>

        init(_ outcome: EventLoopPromise<String>) { self.outcome = outcome }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            outcome.fail(Failure.unreachable("it does not speak TLS"))
            context.close(promise: nil)
        }

        func channelInactive(context: ChannelHandlerContext) {
            outcome.fail(Failure.unreachable("it closed the connection"))
        }
    }
}
