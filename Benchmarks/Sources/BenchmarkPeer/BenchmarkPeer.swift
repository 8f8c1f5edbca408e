import Foundation
import Loveseat

/// Serves a database until it is ended: `BenchmarkPeer FOLDER NAME [delta] [tls] [raw]`; raw: nothing is compressed.
@main
enum BenchmarkPeer {
    static func main() async throws {
        let arguments = CommandLine.arguments
        let usesDeltas = arguments.contains("delta")
        let directory = DatabaseConfiguration(directory: arguments[1], enableDeltaSync: usesDeltas)
        let database = try Database(name: arguments[2], config: directory)
        var configuration = URLEndpointListenerConfiguration(collections: [try database.defaultCollection()])
        configuration.disableTLS = !arguments.contains("tls")
        configuration.identityStore = FileIdentityStore(folder: URL(filePath: arguments[1] + "/identities"))
        if arguments.contains("raw") { configuration.compressionLevel = 0 }
        configuration.networkInterface = "127.0.0.1"
        configuration.enableDeltaSync = usesDeltas
        let listener = URLEndpointListener(configuration)
        try await listener.start()
        print(listener.urls?.first?.absoluteString ?? "")
        fflush(nil)
        while true { try await Task.sleep(for: .seconds(3_600)) }
    }
}
