import LoveseatModel
import LoveseatReplication

/// A resolver as an app would write one: of every property the greater value, so that it does not matter who merges what
/// first.
enum MergingResolver {
    static func resolve(_ conflict: ConflictCase) -> Resolution {
        if conflict.local.isDeleted || conflict.remote.isDeleted { return .deleted }
        let (local, remote) = (
            JSONElement(conflict.local.body).value, JSONElement(conflict.remote.body).value
        )
        var merged = local.object ?? [:]
        for (key, value) in remote.object ?? [:] {
            guard let mine = merged[key] else {
                merged[key] = value
                continue
            }
            if mine.description < value.description { merged[key] = value }
        }
        if .object(merged) == local { return .local }
        if .object(merged) == remote { return .remote }
        return .merged(JSONText(canonical: .object(merged)))
    }
}
