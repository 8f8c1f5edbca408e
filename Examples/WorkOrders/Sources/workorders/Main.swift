import Foundation
import Hummingbird
import Logging
import Loveseat
import Metrics
import WorkOrdersKit

/// `workorders`: configured by the environment, as a service is.
@main
enum Main {
    static let usage = """
        usage: workorders, without arguments. Set these in the environment:
          WORKORDERS_TOKEN      the token of the API, at least 16 characters (required)
          WORKORDERS_FOLDER     where the database and the key are; the default is ./workorders
          WORKORDERS_PORT       the port of the API on 127.0.0.1; the default is 8080
          WORKORDERS_SYNC_PORT  the port to which devices connect; the default is 55990
          WORKORDERS_INTERFACE  the network interface or address on which they connect; the default is all
        """

    static func main() async {
        var logger = Logger(label: "workorders")
        logger.logLevel = .info
        let environment = ProcessInfo.processInfo.environment
        guard CommandLine.arguments.count == 1, let token = environment["WORKORDERS_TOKEN"],
            token.utf8.count >= 16,
            let apiPort = UInt16(environment["WORKORDERS_PORT"] ?? "8080"),
            let syncPort = UInt16(environment["WORKORDERS_SYNC_PORT"] ?? "55990")
        else {
            FileHandle.standardError.write(Data((usage + "\n").utf8))
            exit(64)
        }
        var options = ServerOptions(
            folder: URL(filePath: environment["WORKORDERS_FOLDER"] ?? "workorders"),
            token: token
        )
        (options.apiPort, options.syncPort) = (Int(apiPort), syncPort)
        options.syncInterface = environment["WORKORDERS_INTERFACE"]
        let metrics = PrometheusMetrics()
        MetricsSystem.bootstrap(metrics)
        do { try await makeServer(options, metrics: metrics, logger: logger).runService() } catch {
            logger.critical("\((error as? LoveseatError)?.message ?? "\(error)")")
            exit(74)
        }
    }
}
