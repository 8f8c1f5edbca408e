import Foundation
import Loveseat

/// A work order: the office writes it, and a device in the field carries it out.
package struct Order: Codable, Identifiable, RevisionTracking, Hashable, Sendable {
    package enum Status: String, Codable, Sendable, CaseIterable {
        case open, started, done
    }

    package var id = UUID().uuidString.lowercased()
    package var revisionID: RevisionID?
    package var title: String
    package var site: String
    /// The device that may change the order; nil while it is offered to all.
    package var assignee: String?
    package var status = Status.open
    package var notes = ""
    /// From 1, the most urgent, to 5.
    package var priority = 3
    package var due: Date?
    /// When the server saw that it was done. The server sets it.
    package var confirmed: Date?

    package init(title: String, site: String) { (self.title, self.site) = (title, site) }

    /// What is wrong, by the names of the properties. The same rule is for the API and for what devices send.
    var problems: [String: String] {
        var problems: [String: String] = [:]
        if !(1...200).contains(title.count) { problems["title"] = "must have 1 to 200 characters" }
        if !(1...100).contains(site.count) { problems["site"] = "must have 1 to 100 characters" }
        if notes.utf8.count > 20_000 { problems["notes"] = "must not be larger than 20 kB" }
        if !(1...5).contains(priority) { problems["priority"] = "must be 1 to 5" }
        if let assignee, !Device.isName(assignee) { problems["assignee"] = Device.nameRule }
        if status == .done, assignee == nil { problems["assignee"] = "must be there if the order is done" }
        return problems
    }
}

extension Order {
    /// Reads an order that another version of the server or of an app saved, too: what is missing has its default.
    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            title: try values.decode(String.self, forKey: .title),
            site: try values.decode(String.self, forKey: .site)
        )
        id = try values.decodeIfPresent(String.self, forKey: .id) ?? id
        revisionID = try values.decodeIfPresent(RevisionID.self, forKey: .revisionID)
        assignee = try values.decodeIfPresent(String.self, forKey: .assignee)
        status = try values.decodeIfPresent(Status.self, forKey: .status) ?? status
        notes = try values.decodeIfPresent(String.self, forKey: .notes) ?? notes
        priority = try values.decodeIfPresent(Int.self, forKey: .priority) ?? priority
        due = try values.decodeIfPresent(Date.self, forKey: .due)
        confirmed = try values.decodeIfPresent(Date.self, forKey: .confirmed)
    }
}

/// A device that may connect, by its name and a password that was made for it.
struct Device: Codable, Identifiable, Sendable {
    /// The name.
    var id: String
    /// The SHA-256 of the password, which has 144 random bits: nobody can guess it, and its digest needs no salt.
    var digest: String
    var created = Date()

    static let nameRule = "must have 1 to 40 lower-case letters, digits and hyphens"

    static func isName(_ name: String) -> Bool {
        (1...40).contains(name.utf8.count)
            && name.utf8.allSatisfy { (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x2D }
    }
}
