public import LoveseatNetwork

/// A connection over the app's own transport.
///
/// Its methods may be called on any thread. Messages are sent one at a time: the next one follows the completion of the one before.
public protocol MessageEndpointConnection {
    /// Connects to the peer. Call the completion once, with true or with an error. From then on, pass what arrives to `connection`.
    func open(connection: any ReplicatorConnection, completion: @escaping (Bool, MessagingError?) -> Void)
    /// Disconnects, because replication has finished or failed. Call the completion once.
    func close(error: (any Error)?, completion: @escaping () -> Void)
    /// Sends a message. Call the completion once, when the connection can take another message.
    func send(message: Message, completion: @escaping (Bool, MessagingError?) -> Void)
}

/// The object to which a ``MessageEndpointConnection`` passes what it receives. It is safe to use from any thread.
public protocol ReplicatorConnection {
    /// Reports that the other side closed the connection, or that the connection broke if there is an error.
    func close(error: MessagingError?)
    /// Passes on a message, or bytes of a stream, in the order in which they arrive.
    func receive(message: Message)
}

/// Creates connections for a ``MessageEndpoint``.
public protocol MessageEndpointDelegate {
    /// Returns a new connection. Each attempt to connect needs another one.
    func createConnection(endpoint: MessageEndpoint) -> any MessageEndpointConnection
}
