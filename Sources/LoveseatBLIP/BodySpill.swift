/// Keeps the bodies of received messages that are too much for memory, for one connection.
///
/// An error that it throws ends the connection, as a failure of this side and not of the peer.
package protocol BodySpill: AnyObject {
    /// Adds bytes to those that are kept under a key.
    func append(_ bytes: [UInt8], to key: UInt64) throws
    /// Returns all bytes that were added under a key, and forgets them; nothing for an unknown key.
    func remove(_ key: UInt64) throws -> [UInt8]
    /// Forgets the bytes that are kept under a key.
    func drop(_ key: UInt64)
}
