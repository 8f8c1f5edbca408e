import LoveseatModel
import LoveseatStorage

/// A list that a database keeps as JSON beside its collections.
struct StoredList<Element> {
    /// The name under which it is kept.
    let key: String
    /// The list's name in messages.
    let name: String
    /// An element's JSON.
    let json: (Element) -> JSONValue
    /// The element of such JSON; nil for one that is not of this list.
    let element: (JSONElement) -> Element?

    func elements(of database: Database) throws(LoveseatError) -> [Element] {
        let store = try database.store
        return try DocumentStore.wrapping { try store.readSettings { try elements(in: $0) } }
    }

    func change(in database: Database, _ change: ([Element]) -> [Element]) throws(LoveseatError) {
        let store = try database.store
        try DocumentStore.wrapping {
            try store.write { transaction in
                let json = change(try elements(in: transaction)).map(json)
                try transaction.setInfo(key, JSONValue.array(json).description)
            }
        }
    }

    private func elements(in view: StoreReadTransaction) throws -> [Element] {
        // Nothing has been added yet.
        guard let text = try view.info(key) else { return [] }
        guard let json = try? JSONElement(parsing: Array(text.utf8)) else {
            throw LoveseatError(
                .corruptData,
                "the list of \(name) in the database is damaged: restore a backup, or replicate into a new database"
            )
        }
        return json.items.compactMap(element)
    }
}
