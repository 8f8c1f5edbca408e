package import LoveseatModel
import LoveseatStorage

/// Indexes within a transaction, for faces whose transactions have every call.
extension ReadTransaction {
    /// The names of a collection's indexes, in order.
    package func indexes(of collection: Collection) throws(LoveseatError) -> [String] {
        try indexConfigurations(of: collection).map(\.name)
    }

    /// The names and configurations of a collection's indexes, in order of the names.
    package func indexConfigurations(of collection: Collection) throws(LoveseatError)
        -> [NamedIndexConfiguration]
    {
        try read(collection) {
            $0.indexes(of: collection.handle).map { ($0.name, $0.specification.configuration) }
        }
    }
}

extension WriteTransaction {
    /// Creates an index; see ``Collection/createIndex(_:withName:)``.
    package func createIndex(
        _ config: any IndexConfiguration,
        withName name: String,
        in collection: Collection
    ) throws(LoveseatError) {
        try require(collection)
        let specification = try IndexSpecification(config, name: name)
        try write { try $0.indexTable.create(name, specification, in: collection.handle) }
    }

    /// Deletes an index. Does nothing if there is none of this name.
    package func deleteIndex(forName name: String, in collection: Collection) throws(LoveseatError) {
        try require(collection)
        try write { try $0.indexTable.delete(name, in: collection.handle) }
    }
}
