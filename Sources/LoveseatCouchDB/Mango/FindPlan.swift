import LoveseatCouchDBReplication
import LoveseatModel

/// The index that a request uses, chosen as CouchDB does, because the order of the results depends on it.
struct FindPlan: Sendable {
    private static let noUsableIndex = CouchDBError(
        400,
        "no_usable_index",
        "No index exists for this sort, try indexing by the sort fields."
    )

    let index: MangoIndex
    /// Warnings for the client.
    var warnings: [String] = []
    /// The other indexes that could have been used.
    let others: [MangoIndex]

    /// - Throws: `no_usable_index`, `invalid_index`.
    init(_ request: FindRequest, among indexes: [MangoIndex]) throws(CouchDBError) {
        let usable = indexes.filter { Self.isUsable($0, for: request) }
        // The index of the IDs can always be used without an order.
        guard !usable.isEmpty else { throw Self.noUsableIndex }
        var chosen: MangoIndex?
        if let designID = request.useIndex.first {
            let name = request.useIndex.count > 1 ? request.useIndex[1] : nil
            let named = usable.filter {
                $0.designID.isExactly(designID) && (name == nil || $0.name.isExactly(name ?? ""))
            }
            chosen = Self.best(named, for: request)
            if chosen == nil {
                let problem =
                    name.map {
                        "\(designID), \($0) was not used because it is not a valid index for this query."
                    }
                    ?? "\(designID) was not used because it does not contain a valid index for this query."
                guard request.allowsFallback else { throw CouchDBError(400, "invalid_index", problem) }
                warnings.append(problem)
            }
        }
        let candidates = usable.filter { $0.partialFilter == nil }
        guard let index = chosen ?? Self.best(candidates, for: request) else {
            throw Self.noUsableIndex
        }
        self.index = index
        others = candidates.filter {
            !$0.designID.isExactly(index.designID) || !$0.name.isExactly(index.name)
        }
        if index.designID == nil {
            warnings.append("No matching index found, create an index to optimize query time.")
        }
    }

    /// Whether every document that the selector can match is in the index, and the index has the order that is asked for.
    private static func isUsable(_ index: MangoIndex, for request: FindRequest) -> Bool {
        let isSorted = request.sort.isEmpty || begins(index.fields, with: request)
        guard index.designID != nil else { return isSorted }
        // Clients can make an index without fields, which finds nothing.
        guard !index.fields.isEmpty else { return false }
        let implied: Set<Selector.FieldPath> = [["_id"], ["_rev"]]
        return isSorted
            && Set(index.fields).subtracting(request.sort).subtracting(implied)
                .isSubset(of: request.selector.requiredPaths)
    }

    /// Fields with one value need no order.
    private static func begins(_ fields: [Selector.FieldPath], with request: FindRequest) -> Bool {
        if fields.starts(with: request.sort) { return true }
        let constant = request.selector.comparisons.filter { $0.value.contains { $0.0 == [.same] } }
        let isConstant = { (path: Selector.FieldPath) in constant[path] != nil }
        return fields.drop(while: isConstant).starts(with: request.sort.drop(while: isConstant))
    }

    /// The part of the index in which all results are, as keys of a view would limit it; nil for the index of the IDs.
    func keyRange(of request: FindRequest) -> (start: [JSONValue], end: [JSONValue])? {
        guard index.designID != nil else { return nil }
        let comparisons = index.fields.map { request.selector.comparisons[$0] ?? [] }
        /// Of several bounds, the closest one. A field without a bound ends the key.
        func key(_ far: Selector.Comparison, _ near: Selector.Comparison) -> [JSONValue] {
            var key: [JSONValue] = []
            for comparisons in comparisons {
                let bounds = comparisons.filter { !$0.0.contains(far) && !$0.0.isEmpty }.map(\.1)
                guard let bound = bounds.max(by: { Collation.compare($0, $1) == near }) else { break }
                key.append(bound)
            }
            return key
        }
        // Behind all that begins like this.
        return (key(.before, .before), key(.after, .after) + ["<MAX>"])
    }

    private static func best(_ indexes: [MangoIndex], for request: FindRequest) -> MangoIndex? {
        let comparisons = request.selector.comparisons
        func rank(_ index: MangoIndex) -> (Int, Int, Int, ExactText) {
            let prefix = index.fields.prefix { comparisons[$0] != nil }.count
            return (
                index.designID == nil ? 1 : 0, index.fields.count - prefix, index.fields.count,
                ExactText("\(index.designID ?? "")/\(index.name)")
            )
        }
        return indexes.min { rank($0) < rank($1) }
    }
}

/// A condition in SQL++ that finds all documents which a selector can match, and some others.
struct CandidateCondition: Sendable {
    /// SQLite refuses an expression with a thousand.
    private static let maximumConditions = 100

    let text: String
    let parameters: JSONObject

    /// Nil if the index does not narrow the choice. Texts are narrowed by equality only: SQL++ has another order of them.
    init?(_ selector: Selector, by index: MangoIndex) {
        guard index.designID != nil, let path = index.fields.first, let expression = Self.expression(path),
            let comparisons = selector.comparisons[path]
        else { return nil }
        var conditions: [String] = []
        var parameters: JSONObject = [:]
        func add(_ sign: String, _ value: JSONValue) {
            // Without the others there are more candidates, of which the selector takes the same.
            guard conditions.count < Self.maximumConditions else { return }
            let name = "p\(parameters.count)"
            conditions.append("\(expression) \(sign) $\(name)")
            parameters[name] = value
        }
        var hasLowerBound = false
        for (wanted, value) in comparisons {
            switch (wanted, value) {
            case ([.same], .string): add("=", value)
            case ([.same], .number(let number)):
                guard let bounds = Self.bounds(of: number) else { break }
                add(">=", bounds.lower)
                add("<=", bounds.upper)
            case ([.after], .number(let number)), ([.after, .same], .number(let number)):
                guard let bounds = Self.bounds(of: number) else { break }
                hasLowerBound = true
                add(">=", bounds.lower)
            default: break
            }
        }
        // Without a lower bound, null and booleans come before numbers here, and behind them in SQL.
        if hasLowerBound {
            for case (let wanted, .number(let number)) in comparisons
            where wanted.contains(.before) && !wanted.contains(.after) {
                if let bounds = Self.bounds(of: number) { add("<=", bounds.upper) }
            }
        }
        guard !conditions.isEmpty else { return nil }
        text = conditions.joined(separator: " AND ")
        self.parameters = parameters
    }

    /// The numbers between which SQL sees a number: beyond 53 bits it may be rounded. Nil for one that is beyond a double.
    private static func bounds(of number: JSONNumber) -> (lower: JSONValue, upper: JSONValue)? {
        let double = number.double
        guard double.magnitude < .greatestFiniteMagnitude else { return nil }
        guard double.magnitude >= 9_007_199_254_740_992 else { return (.number(number), .number(number)) }
        return (.number(.double(double.nextDown)), .number(.double(double.nextUp)))
    }

    /// A path in SQL++; nil for one that may go through an array.
    static func expression(_ path: Selector.FieldPath) -> String? {
        guard !path.isEmpty,
            !path.contains(where: { name in
                let name = name.text
                return name.isEmpty || name.utf8.first == UInt8(ascii: "_") || Int(name) != nil
                    || name.utf8.contains(UInt8(ascii: "`"))
            })
        else { return nil }
        return path.map { "`\($0.text)`" }.joined(separator: ".")
    }
}

extension FindPlan {
    /// Whether documents are chosen by what they say of their attachments, and whether they are shown with that: otherwise nobody needs the MD5s
    /// of those.
    func attachments(in request: FindRequest) -> (choose: Bool, areShown: Bool) {
        func isNamed(in texts: [String]) -> Bool {
            texts.contains { Array($0.utf8).contains(word: "_attachments") }
        }
        let conditions = [request.selector, index.partialFilter].compactMap { $0?.description.description }
        let paths = (index.fields + request.sort).map { Selector.text(of: $0) }
        let choose = isNamed(in: conditions + paths)
        let fields = request.fields.map { Selector.text(of: $0) }
        return (choose, choose || fields.isEmpty || isNamed(in: fields))
    }
}
