/// A thread on which the transactions of tasks run one after another, since they may block it.
///
/// The closure stays part of its task: it sees the task's local values, and whether the task is cancelled.
package actor TransactionLane {
    let executor: QueueExecutor

    package init(label: String) { executor = QueueExecutor(label: label) }

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    func run<T: Sendable>(_ body: @Sendable () throws -> T) throws -> T { try body() }
}
