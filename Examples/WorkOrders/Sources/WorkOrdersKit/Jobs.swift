import Foundation
import Logging
import Loveseat
import Metrics
import ServiceLifecycle

/// Confirms orders that devices have done: a live query reacts to what arrives, whoever sent it.
package struct Confirmations: Service {
    private let store: OrderStore
    private let logger: Logger

    package init(_ store: OrderStore, logger: Logger) { (self.store, self.logger) = (store, logger) }

    package func run() async throws {
        let query = try store.database.createQuery(
            "SELECT meta().id FROM field.orders WHERE status = 'done' AND confirmed IS NOT VALUED"
        )
        let confirmed = Counter(label: "workorders_orders_confirmed")
        // What was done while the server was down is in the first result.
        for await change in try query.changes().cancelOnGracefulShutdown() {
            if let error = change.error {
                logger.error("orders to confirm cannot be found: \(error.message)")
            }
            for id in (change.results ?? []).compactMap({ $0["id"]?.string }) {
                do {
                    try await confirm(id)
                    confirmed.increment()
                } catch { logger.error("order \(id) cannot be confirmed: \(error)") }
            }
        }
    }

    private func confirm(_ id: String) async throws {
        try await store.database.write { transaction in
            // It may have been deleted or opened again since.
            guard try transaction.exists(id: id, in: store.orders) else { return }
            _ = try transaction.update(id: id, in: store.orders, as: Order.self) { order in
                if order.status == .done, order.confirmed == nil { order.confirmed = Date() }
            }
        }
    }
}

/// Every night: forgets old deletions, returns space to the disk, and lets SQLite look at its statistics.
package struct Maintenance: Service {
    private let store: OrderStore
    private let hour: Int
    private let logger: Logger

    // `hour`: of the day, in UTC.
    package init(_ store: OrderStore, hour: Int = 3, logger: Logger) {
        (self.store, self.hour, self.logger) = (store, hour, logger)
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                guard (try? await Task.sleep(for: .seconds(Self.seconds(from: Date(), to: hour)))) != nil
                else { return }
                do {
                    let removed = try await perform()
                    logger.info("maintenance: \(removed) tombstones removed")
                } catch { logger.error("maintenance failed: \(error)") }
            }
        }
    }

    /// Does it now. Returns the number of tombstones that were removed.
    ///
    /// A device that was away for longer than 90 days brings deleted orders back: remove such a device first.
    @discardableResult
    package func perform() async throws -> Int {
        let started = ContinuousClock.now
        let removed = try await store.database.performMaintenance(
            types: [.compact, .optimize],
            removingTombstonesOlderThan: .seconds(90 * 86_400)
        )
        Counter(label: "workorders_maintenance_runs").increment()
        Gauge(label: "workorders_maintenance_seconds").record((ContinuousClock.now - started) / .seconds(1))
        return removed
    }

    /// The number of seconds until an hour of the day begins, in UTC; more than 0.
    package static func seconds(from now: Date, to hour: Int) -> Double {
        let sinceMidnight = now.timeIntervalSince1970.truncatingRemainder(dividingBy: 86_400)
        let wait = Double(hour * 3_600) - sinceMidnight
        return wait > 0 ? wait : wait + 86_400
    }
}

/// Closes the database after everything that uses it has ended.
struct DatabaseCloser: Service {
    let database: Database

    func run() async throws {
        try? await gracefulShutdown()
        try await database.close()
    }
}
