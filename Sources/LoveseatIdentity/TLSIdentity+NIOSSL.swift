import LoveseatModel
package import NIOSSL
import SwiftASN1
import X509

extension TLSIdentity {
    /// The key for NIOSSL.
    package func sslPrivateKey() throws -> NIOSSLPrivateKey {
        try NIOSSLPrivateKey(bytes: Array(key.serializeAsPEM().pemString.utf8), format: .pem)
    }
}
