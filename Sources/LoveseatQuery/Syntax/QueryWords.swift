/// The words of the language, for programs that complete what a person types.
package enum QueryWords {
    /// Keywords and names of functions, in capitals and in order.
    package static var all: [String] {
        let functions = QueryFunctionTable.signatures.keys.map { String($0) } + ["MATCH", "META", "RANK"]
        return Array(QueryCursor.reserved.union(functions.map { $0.uppercased() })).sorted()
    }
}
