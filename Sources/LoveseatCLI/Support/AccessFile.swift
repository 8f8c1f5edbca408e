import Foundation
import Loveseat
import Synchronization

/// The policy of `serve --access`: a JSON file that says what each peer may do, read again at SIGHUP. A peer is named by its
/// certificate's fingerprint, or by ``PeerIdentity/name``, which it cannot choose.
///
/// ```json
/// { "ana": "write",
///   "bob": { "travel.sights": "read",
///            "travel.notes": { "access": "write", "if": "owner = \"bob\"", "otherwise": "read" } },
///   "*": "none" }
/// ```
final class AccessFile: Sendable {
    private struct Rule {
        let access: DocumentAccess
        let condition: FilterExpression?
        let otherwise: DocumentAccess

        /// The highest access that it grants for any document.
        var highestAccess: DocumentAccess { max(access, otherwise) }
    }

    private typealias Rules = [ExactText: [ExactText: Rule]]

    private let path: String
    private let rules: Mutex<Rules>

    init(_ path: String) throws {
        self.path = path
        rules = Mutex(try Self.read(path))
    }

    /// Reads the file again. If it is not valid, the rules stay as they were.
    func reload() throws {
        let read = try Self.read(path)
        rules.withLock { $0 = read }
    }

    var policy: AccessPolicy {
        AccessPolicy { [self] peer, collection, document in
            let rule = rules.withLock { rules -> Rule? in
                let own =
                    peer.fingerprint.flatMap { rules[ExactText($0)] } ?? peer.name.flatMap {
                        rules[ExactText($0)]
                    } ?? rules["*"]
                return own?[ExactText(collection.fullName)] ?? own?["*"]
            }
            guard let rule else { return .none }
            guard let document, let condition = rule.condition else {
                return document == nil ? rule.highestAccess : rule.access
            }
            return condition.matches(document) ? rule.access : rule.otherwise
        }
    }

    // MARK: Reading

    private static func read(_ path: String) throws -> Rules {
        let data = try OptionFile.contents(path)
        let json: JSONValue
        do throws(JSONError) { json = try JSONElement(scanning: Array(data)).value } catch {
            throw LoveseatError(error, in: "the access file \(path)")
        }
        guard case .object(let peers) = json else { throw mistake(path, "it is not a JSON object") }
        var rules: Rules = [:]
        for (peer, value) in peers {
            guard case .object(let collections) = value else {
                rules[ExactText(peer)] = ["*": try rule(value, path)]
                continue
            }
            var own: [ExactText: Rule] = [:]
            for (name, rule) in collections {
                own[ExactText(name == "*" ? name : try name.collectionName.fullName)] = try Self.rule(
                    rule,
                    path
                )
            }
            rules[ExactText(peer)] = own
        }
        return rules
    }

    private static func rule(_ value: JSONValue, _ path: String) throws -> Rule {
        guard case .object(let fields) = value else {
            return Rule(access: try access(value, path), condition: nil, otherwise: .none)
        }
        if let unknown = fields.keys.first(where: { !["access", "if", "otherwise"].contains($0) }) {
            throw mistake(path, "a rule cannot have \"\(unknown)\"")
        }
        guard let text = fields["if"]?.string, let condition = FilterExpression(text) else {
            throw mistake(path, "the \"if\" of a rule must be a condition such as 'owner = \"bob\"'")
        }
        return Rule(
            access: try access(fields["access"] ?? .null, path),
            condition: condition,
            otherwise: try fields["otherwise"].map { try access($0, path) } ?? .none
        )
    }

    private static func access(_ value: JSONValue, _ path: String) throws -> DocumentAccess {
        switch value.string {
        case "none": .none
        case "read": .read
        case "write": .write
        default: throw mistake(path, "the access \(value) is not \"none\", \"read\" or \"write\"")
        }
    }

    private static func mistake(_ path: String, _ what: String) -> LoveseatError {
        LoveseatError(.invalidJSON, "the access file \(path): \(what)")
    }
}
