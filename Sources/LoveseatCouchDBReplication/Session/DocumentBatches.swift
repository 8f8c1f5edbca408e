/// Divides what is sent into requests.
package enum DocumentBatches {
    /// Divides items into runs of at most `count` items and about `bytes` bytes.
    package static func divide<Item>(_ items: [Item], count: Int, bytes: Int, size: (Item) -> Int) -> [[Item]]
    {
        var batches: [[Item]] = []
        var (batch, sum): ([Item], Int) = ([], 0)
        for item in items {
            let length = size(item)
            if !batch.isEmpty, batch.count >= count || sum + length > bytes {
                batches.append(batch)
                (batch, sum) = ([], 0)
            }
            batch.append(item)
            sum += length
        }
        if !batch.isEmpty { batches.append(batch) }
        return batches
    }

    /// The halves of a batch that was too large; nil for a single item.
    package static func halves<Item>(_ batch: [Item]) -> ([Item], [Item])? {
        guard batch.count > 1 else { return nil }
        return (Array(batch[..<(batch.count / 2)]), Array(batch[(batch.count / 2)...]))
    }
}
