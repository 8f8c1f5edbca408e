import LoveseatModel
import NIOCore
import NIOPosix

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

extension LoveseatError {
    /// An error of sockets, name lookup or HTTP in our codes (replication.md §15.2).
    init(network error: any Error) {
        switch error {
        case let error as LoveseatError: self = error
        case let error as IOError:
            let text = String(cString: strerror(error.errnoCode)).lowercased()
            self.init(.init(Int(error.errnoCode), domain: .posix), text)
        case let error as NIOConnectionError: self.init(connecting: error)
        case ChannelError.connectTimeout: self.init(.timeout, "the peer did not answer in time")
        case is ChannelError: self.init(.webSocketAbnormalClose, "the connection broke: \(error)")
        case is CancellationError: self.init(.webSocketAbnormalClose, "cancelled")
        default: self.init(.webSocketAbnormalClose, "the connection broke: \(error)")
        }
    }

    private init(connecting error: NIOConnectionError) {
        let address = "\(error.host):\(error.port)"
        if let failure = error.connectionErrors.first {
            let inner = LoveseatError(network: failure.error)
            let advice = inner.code == Self.refused ? ": is the peer running, and is the port right?" : ""
            self.init(inner.code, "cannot connect to \(address): \(inner.message)\(advice)")
        } else {
            self.init(.unknownHost, "there is no host \(error.host): check the name, or the network's DNS")
        }
    }

    private static let refused = Code(Int(ECONNREFUSED), domain: .posix)
}
