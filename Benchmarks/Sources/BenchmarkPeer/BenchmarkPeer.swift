import Foundation
import Loveseat

/// Serves a database until it is ended: `BenchmarkPeer FOLDER NAME [delta]`.
@main
enum BenchmarkPeer {
    static func main() async throws {
        let arguments = CommandLine.arguments
        let usesDeltas = arguments.last == "delta"
        let directory = DatabaseConfiguration(directory: arguments[1], enableDeltaSync: usesDeltas)
        let database = try Database(name: arguments[2], config: directory)
        var configuration = URLEndpointListenerConfiguration(collections: [try database.defaultCollection()])
        configuration.disableTLS = true
        configuration.networkInterface = "127.0.0.1"
        configuration.enableDeltaSync = usesDeltas
        let listener = URLEndpointListener(configuration)
        try await listener.start()
        print(listener.urls?.first?.absoluteString ?? "")
        fflush(nil)
        while true { try await Task.sleep(for: .seconds(3_600)) }
    }
}
