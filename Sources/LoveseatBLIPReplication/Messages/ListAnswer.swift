import LoveseatBLIP
import LoveseatModel

/// The answer to an entry of a list.
protocol ListDecision: Hashable {
    /// Reads an item of an answer; nil for one that was left out.
    init(_ answer: JSONElement?, _ names: RevisionNaming)

    var json: JSONValue { get }
}

/// The answer to a list of `changes` or `proposeChanges`: a decision about each entry (replication.md §7, §8).
struct ListAnswer<Decision: ListDecision>: Hashable {
    var receiver = Receiver()
    var items: [Decision]

    init(_ items: [Decision], from receiver: Receiver) { (self.items, self.receiver) = (items, receiver) }

    /// `count`: how many entries the list had.
    init(_ message: Message, count: Int, _ names: RevisionNaming) throws(ReplyError) {
        receiver = Receiver(message)
        let answers = message.body.isEmpty ? [] : try JSONElement.list(message.body)
        guard answers.count <= count else { throw ReplyError("BLIP", 400, "more answers than changes") }
        let missing = Array(repeating: Decision(nil, names), count: count - answers.count)
        items = answers.map { Decision($0, names) } + missing
    }

    /// The answer without the zeros at its end.
    var message: Message {
        let zero: JSONValue = 0
        let items = items.map(\.json)
        let trailing = items.reversed().prefix { $0 == zero }.count
        return Message(
            receiver.properties,
            body: JSONText(canonical: .array(items.dropLast(trailing))).bytes
        )
    }
}

/// The properties with which a side describes itself when it answers a list.
struct Receiver: Hashable, Sendable {
    /// How much history it wants; nil if it does not say.
    var maxHistory: Int?
    /// It looks for blobs in bodies, and needs no table of attachments.
    var findsBlobs = false
    var takesDeltas = false
    /// The protocol extensions that it supports; nil if it names none.
    var extensions: String?

    init() {}

    init(_ message: Message) {
        maxHistory = message.properties.int("maxHistory")
        findsBlobs = message.properties.bool("blobs")
        takesDeltas = message.properties.bool("deltas")
        extensions = message.properties[ProtocolExtensions.property]
    }

    fileprivate var properties: MessageProperties {
        var properties = MessageProperties()
        properties["maxHistory"] = maxHistory.map(String.init)
        if findsBlobs { properties["blobs"] = "true" }
        if takesDeltas { properties["deltas"] = "true" }
        properties[ProtocolExtensions.property] = extensions
        return properties
    }
}
