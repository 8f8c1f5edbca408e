import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatNetwork
import Testing

extension ServedDatabase {
    /// Serves documents that only their `owner` may write, and that everybody may read if they are `public`.
    static func withOwners(_ change: (inout CouchDBListenerConfiguration) -> Void = { _ in }) async throws
        -> ServedDatabase
    {
        let served = try await ServedDatabase {
            $0.authenticator = ListenerPasswordAuthenticator { $0 == $1 }
            $0.allowsDatabaseCreation = true
            let database = $0.database
            $0.accessPolicy = AccessPolicy { peer, collection, document in
                // A policy may read the database.
                _ = try? database.defaultCollection().count
                if collection.name == "hidden" { return peer.username == "ana" ? .write : .none }
                guard let document else { return .write }
                if document["owner"]?.string == peer.username { return .write }
                return document["public"]?.bool == true ? .read : .none
            }
            _ = try $0.database.createCollection(name: "hidden")
            change(&$0)
        }
        for (id, user, isPublic) in [("hers", "ana", false), ("his", "bob", false), ("all", "ana", true)] {
            let body: JSONValue = ["owner": .string(user), "public": .bool(isPublic)]
            let answer = try await served.call("PUT", "/main/\(id)", body, as: user)
            #expect(answer.status == 201, "\(answer.text)")
        }
        return served
    }

    /// The current revision of a document of the default collection.
    func revision(_ id: String, as user: String) async throws -> String {
        try #require(try await call("GET", "/main/\(id)", as: user).json["_rev"]?.string)
    }
}
