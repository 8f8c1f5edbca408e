import Foundation
import Loveseat
import Synchronization

/// The policy of `serve --access`: a JSON file that says what each peer may do, read again at SIGHUP. `docs/command-line.md` describes it.
final class AccessFile: Sendable {
    fileprivate struct Rule {
        let access: DocumentAccess
        let condition: FilterExpression?
        let otherwise: DocumentAccess

        /// The highest access that it grants for any document.
        var highestAccess: DocumentAccess { max(access, otherwise) }
    }

    fileprivate typealias Rules = [ExactText: [ExactText: Rule]]

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

    /// The collections that rules name, and that are not among these, with the first of the peers whose rules do; in order.
    func absent(from collections: [String]) -> [(peer: String, collection: String)] {
        let known = Swift.Set(collections.map { ExactText($0) } + ["*"])
        var found: [ExactText: ExactText] = [:]
        rules.withLock { rules in
            for (peer, own) in rules {
                for name in own.keys where !known.contains(name) {
                    found[name] = min(found[name] ?? peer, peer)
                }
            }
        }
        return found.sorted { $0.key < $1.key }.map { ($0.value.text, $0.key.text) }
    }

    // MARK: Reading

    private static func read(_ path: String) throws -> Rules { try AccessFileReader(path).rules() }
}

/// Reads an access file. Every mistake is named with its line, and with what to write instead.
private struct AccessFileReader {
    private let path: String
    private let text: [UInt8]

    init(_ path: String) throws {
        self.path = path
        text = Array(try OptionFile.contents(path))
    }

    func rules() throws -> AccessFile.Rules {
        let json: JSONElement
        do throws(JSONError) {
            json = try JSONElement(scanning: text, limits: JSONLimits(refusesDuplicateKeys: true))
        } catch { throw LoveseatError(error, in: text, of: "the access file \(path)") }
        guard json.kind == .object else {
            throw mistake(json, #"it must be a JSON object, such as {"ana": "write", "*": "none"}"#)
        }
        var rules: AccessFile.Rules = [:]
        for (peer, value) in json.members {
            // A fingerprint may be written as other programs print it.
            let name = TLSCertificate.fingerprint(reading: peer) ?? peer
            guard rules.updateValue(try collections(value, of: peer), forKey: ExactText(name)) == nil else {
                throw mistake(value, "the fingerprint \(name) has two rules")
            }
        }
        return rules
    }

    /// The rules of a peer: one for all collections, or one for each.
    private func collections(_ value: JSONElement, of peer: String) throws -> [ExactText: AccessFile.Rule] {
        guard value.kind == .object else { return ["*": try rule(value)] }
        if value["if"] != nil || value["otherwise"] != nil {
            throw mistake(
                value,
                #"a rule with a condition is for a collection, or for "*": write {"*": {"access": …, "if": …}}"#
            )
        }
        var rules: [ExactText: AccessFile.Rule] = [:]
        for (name, value) in value.members {
            guard let collection = name == "*" ? name : CollectionName(path: name)?.fullName else {
                throw mistake(
                    value,
                    "\"\(name)\" is not a collection's name: use scope.collection, _default, or * for all others"
                )
            }
            guard rules.updateValue(try rule(value), forKey: ExactText(collection)) == nil else {
                throw mistake(value, "\"\(peer)\" has two rules for the collection \(collection)")
            }
        }
        return rules
    }

    private func rule(_ value: JSONElement) throws -> AccessFile.Rule {
        guard value.kind == .object else {
            return AccessFile.Rule(access: try access(value), condition: nil, otherwise: .none)
        }
        for (key, value) in value.members where !["access", "if", "otherwise"].contains(key) {
            throw mistake(value, "a rule has \"access\", \"if\" and \"otherwise\", and not \"\(key)\"")
        }
        guard let granted = value["access"] else {
            throw mistake(value, "a rule needs an \"access\", which is granted where the \"if\" holds")
        }
        guard let condition = value["if"] else {
            throw mistake(value, #"a rule in braces needs an "if": without a condition, write "write" alone"#)
        }
        guard let expression = condition.string.flatMap({ FilterExpression($0) }) else {
            throw mistake(
                condition,
                #"an "if" must be one condition, such as "owner = \"bob\"", "n >= 3", "photo" or "!photo""#
            )
        }
        return AccessFile.Rule(
            access: try access(granted),
            condition: expression,
            otherwise: try value["otherwise"].map(access) ?? .none
        )
    }

    private func access(_ value: JSONElement) throws -> DocumentAccess {
        switch value.string {
        case "none": .none
        case "read": .read
        case "write": .write
        default:
            throw mistake(
                value,
                "the access \(value.value) is not \"none\", \"read\" or \"write\" (which includes reading)"
            )
        }
    }

    private func mistake(_ element: JSONElement, _ what: String) -> LoveseatError {
        let position = TextPosition(of: element.bytes.startIndex, in: text)
        return LoveseatError(.invalidJSON, "the access file \(path), \(position): \(what)")
    }
}
