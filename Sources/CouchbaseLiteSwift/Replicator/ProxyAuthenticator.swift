/// The user name and password for the system's proxy, which Loveseat does not use.
@available(
    *,
    unavailable,
    message:
        "Loveseat does not use the system's proxy: set proxyURL of the ReplicatorConfiguration, such as http://user:password@proxy.example.org:3128"
)
public struct ProxyAuthenticator {
    /// The user name.
    public let username: String
    /// The password.
    public let password: String

    /// Creates an authenticator.
    public init(username: String, password: String) { (self.username, self.password) = (username, password) }
}

extension ReplicatorConfiguration {
    /// The credentials for the system's proxy, which Loveseat does not use.
    @available(
        *,
        unavailable,
        message:
            "Loveseat does not use the system's proxy: set proxyURL of the ReplicatorConfiguration, such as http://user:password@proxy.example.org:3128"
    )
    public var proxyAuthenticator: ProxyAuthenticator? {
        get { nil }
        set {}
    }
}
