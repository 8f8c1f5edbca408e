public import Foundation
import LoveseatCore
import LoveseatNetwork

/// An endpoint of this module, which stands for one of the engine.
protocol EngineEndpoint: Endpoint {
    var engine: any Endpoint { get }
}

/// A peer at a URL: `wss://host:port/database`, or `ws://` without encryption.
public struct URLEndpoint: EngineEndpoint {
    /// The URL of the database.
    public let url: URL

    /// Creates an endpoint from a URL. A scheme other than `ws` and `wss`, and a user name or password in the URL, end the program.
    public init(url: URL) {
        guard ["ws", "wss"].contains(url.scheme?.lowercased()) else {
            programmerError("the scheme of \(url.absoluteString) has to be ws or wss")
        }
        guard url.user == nil, url.password == nil else {
            programmerError("a user name and password belong in an authenticator, not in the URL")
        }
        self.url = url
    }

    var engine: any Endpoint { LoveseatNetwork.URLEndpoint(url) }
}

/// Another database in this process, to replicate with. Nothing has to be started for it.
public struct DatabaseEndpoint: EngineEndpoint {
    /// The database to replicate with.
    public let database: Database

    /// Creates an endpoint for a database, which has to stay open while it is replicated with.
    public init(database: Database) { self.database = database }

    var engine: any Endpoint { LoveseatCore.DatabaseEndpoint(database: database.engine) }
}
