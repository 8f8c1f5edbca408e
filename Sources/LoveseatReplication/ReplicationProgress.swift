/// How far a replication is. Completed never exceeds total, and equals it when there is nothing to do.
package struct ReplicationProgress: Hashable, Sendable {
    /// Units of work done: about the bytes of bodies.
    package var completed: UInt64 = 0
    /// Units of work known.
    package var total: UInt64 = 0
    /// Whether the total is no longer expected to grow, since the changes of both sides were compared.
    package var isTotalKnown = false
    /// Changes of either side that were compared with the other side.
    package var compared: UInt64 = 0
    /// Documents pushed and pulled.
    package var documents: UInt64 = 0
    /// Those of them that were pushed.
    package var documentsPushed: UInt64 = 0
    /// The documents that were transferred as deltas.
    package var deltas = DeltaStatistics()

    package init() {}

    package mutating func add(_ part: DirectionProgress) {
        completed += min(part.completed, part.total)
        total += part.total
        compared += part.compared
        documents += part.documents
        deltas = deltas + part.deltas
    }

    /// Replaces the part of a collection in a sum. Whether the total is known is not a sum.
    package mutating func replace(_ old: Self, by new: Self) {
        completed = completed &- old.completed &+ new.completed
        total = total &- old.total &+ new.total
        compared = compared &- old.compared &+ new.compared
        documents = documents &- old.documents &+ new.documents
        documentsPushed = documentsPushed &- old.documentsPushed &+ new.documentsPushed
        deltas.sent = deltas.sent &- old.deltas.sent &+ new.deltas.sent
        deltas.received = deltas.received &- old.deltas.received &+ new.deltas.received
        deltas.bytesSaved = deltas.bytesSaved &- old.deltas.bytesSaved &+ new.deltas.bytesSaved
    }
}

/// Statistics of deltas, in both directions.
package struct DeltaStatistics: Hashable, Sendable {
    package var sent: UInt64 = 0
    package var received: UInt64 = 0
    /// Bytes that deltas saved, before compression.
    package var bytesSaved: UInt64 = 0

    package init() {}

    package static func + (lhs: Self, rhs: Self) -> Self {
        var sum = lhs
        sum.sent += rhs.sent
        sum.received += rhs.received
        sum.bytesSaved += rhs.bytesSaved
        return sum
    }
}

/// How far one direction of one collection is.
package struct DirectionProgress: Hashable, Sendable {
    package var completed: UInt64 = 0
    package var total: UInt64 = 0
    package var compared: UInt64 = 0
    package var documents: UInt64 = 0
    package var deltas = DeltaStatistics()

    package init() {}

    package mutating func finish(_ units: Int, isDocument: Bool) {
        completed += UInt64(max(1, units))
        if isDocument { documents += 1 }
    }
}
