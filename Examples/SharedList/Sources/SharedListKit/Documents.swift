import Foundation

/// A list. Its items are documents of their own, so that edits of different items never conflict.
package struct SharedList: Codable, Identifiable, Hashable, Sendable {
    package var id = UUID().uuidString
    package var name: String

    package init(name: String) { self.name = name }
}

/// Something on a list.
package struct Item: Codable, Identifiable, Hashable, Sendable {
    package var id = UUID().uuidString
    /// The ID of the list.
    package var list: String
    package var text: String
    package var note = ""
    package var isDone = false
    package var added = Date()

    package init(list: String, text: String) {
        (self.list, self.text) = (list, text)
    }
}

extension Item {
    /// Reads an item that another version of the app saved, too: what is missing has its default.
    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            list: try values.decodeIfPresent(String.self, forKey: .list) ?? "",
            text: try values.decodeIfPresent(String.self, forKey: .text) ?? ""
        )
        id = try values.decode(String.self, forKey: .id)
        note = try values.decodeIfPresent(String.self, forKey: .note) ?? ""
        isDone = try values.decodeIfPresent(Bool.self, forKey: .isDone) ?? false
        added = try values.decodeIfPresent(Date.self, forKey: .added) ?? .distantPast
    }
}

/// What this device remembers for itself. It is in a collection that is not shared.
struct DeviceSettings: Codable, Identifiable {
    var id = "this"
    /// The port at which other devices know this one; nil if it never showed a code.
    var port: UInt16?
}
