import LoveseatModel

/// Changes of trees by the standard policy, which most tests are about.
extension RevisionTree {
    mutating func insertLocal(
        _ id: RevisionID,
        parent: RevisionID?,
        flags: Flags,
        body: JSONText,
        by policy: TreePolicy = .standard
    ) {
        RevisionEdit(id: id, parent: parent, flags: flags, body: body).insert(into: &self, by: policy)
    }

    mutating func giveUp(_ id: RevisionID) { giveUp(id, by: .standard) }

    mutating func insert(
        _ arrival: RevisionArrival,
        by policy: TreePolicy = .standard
    ) throws(InsertRefusal) -> RevisionArrival.Outcome {
        try arrival.insert(into: &self, by: policy)
    }

    mutating func merge(_ other: TreeKnowledge) throws(InsertRefusal) { try merge(other, by: .standard) }
}

func rev(_ text: String) -> RevisionID {
    guard let id = RevisionID(text) else { preconditionFailure("a test's own revision ID: \(text)") }
    return id
}
