public import CouchbaseLiteSwift

// As Context.swift, for the examples of CouchbaseLiteSwift.

func given<T>() -> T { fatalError() }

nonisolated(unsafe) public var database: CouchbaseLiteSwift.Database = given()
nonisolated(unsafe) public var collection: CouchbaseLiteSwift.Collection = given()
nonisolated(unsafe) public var sights: CouchbaseLiteSwift.Collection = given()
