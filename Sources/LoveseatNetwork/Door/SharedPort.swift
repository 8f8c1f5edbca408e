package import LoveseatIdentity
import NIOCore

/// Another wire on the port of a ``URLEndpointListener``: `CouchDBListener`, of the product LoveseatCouchDB.
///
/// Apps do not conform to this protocol: a listener that is given any other type does not start.
public protocol PortSharingListener: Sendable {}

/// A listener that can serve on the port of another one, whose TLS, authenticator and limits then are its own.
package protocol PortGuest: PortSharingListener {
    /// The protocols that it speaks, by their names in advertisements.
    var protocols: [String] { get }
    /// Prepares to serve on a port that will be opened.
    ///
    /// - Throws: ``LoveseatError`` with `invalidParameter` for settings that cannot work there.
    func open(_ port: SharedPort) async throws -> PipelineInstaller
    /// The port was opened.
    func began(at port: UInt16, on networkInterface: String?) throws
    /// The port is closed: ends what the guest serves.
    func end() async
}

/// A port that two listeners share, as its owner has set it up.
package struct SharedPort: Sendable {
    package let door: Door
    package let identity: TLSIdentity?
    package let configuration: URLEndpointListenerConfiguration
}

/// Decides by the first request of a connection which of two wires it speaks, and gets out of the way.
///
/// A path that ends in `/_blipsync` is Couchbase's, any other one CouchDB's. Nothing is answered here: a request that cannot be understood
/// is left to the second wire, which answers with the error.
final class RequestSorter: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    /// Longer request lines are not Couchbase's, in bytes.
    private static let maximumLine = 4 << 10

    private var received = ByteBuffer()
    private let install: (_ isWebSocket: Bool) throws -> Void

    /// `install` puts the handlers of a wire at the end of the pipeline.
    init(install: @escaping (_ isWebSocket: Bool) throws -> Void) { self.install = install }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        received.writeBuffer(&bytes)
        // The request line may arrive in several pieces.
        guard let isWebSocket = Self.isWebSocket(received.readableBytesView) else { return }
        do { try install(isWebSocket) } catch { return context.close(promise: nil) }
        context.fireChannelRead(wrapInboundOut(received))
        context.fireChannelReadComplete()
        received = ByteBuffer()
        context.pipeline.syncOperations.removeHandler(self, promise: nil)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    /// Whether a request is one for a WebSocket of Couchbase's protocol; nil if more of it is needed.
    static func isWebSocket(_ bytes: some Collection<UInt8>) -> Bool? {
        let line = bytes.prefix(maximumLine).prefix { $0 != UInt8(ascii: "\n") }
        guard line.count < bytes.count else { return nil }
        let words = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        guard words.count == 3 else { return false }
        return words[1].prefix { $0 != UInt8(ascii: "?") }.split(separator: UInt8(ascii: "/")).last
            .map { $0.elementsEqual("_blipsync".utf8) } ?? false
    }
}
