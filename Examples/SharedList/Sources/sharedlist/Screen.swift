import Foundation
import Loveseat
import SharedListKit

/// The screens as text, and the commands of each.
@MainActor
final class Screen {
    private enum Place {
        case lists
        case list(ListModel)
        case item(ItemModel, in: ListModel)
        case sharing
    }

    private let lists: ListsModel
    private let sharing: SharingModel
    /// Where the person is, and the places to go back to.
    private var places = [Place.lists]
    /// The IDs behind the numbers that the person saw last: what arrives meanwhile does not change what a number means.
    private var seen: [String] = []
    private var remark: String?

    init(_ lists: ListsModel, _ sharing: SharingModel) { (self.lists, self.sharing) = (lists, sharing) }

    private var place: Place { places.last ?? .lists }

    // MARK: Showing

    /// The screen as lines, and the IDs of what is numbered.
    private var content: (lines: [String], ids: [String]) {
        switch place {
        case .lists:
            let rows = lists.rows.enumerated().map {
                "\($0 + 1)  \($1.name)  \($1.open) open, \($1.done) done"
            }
            let empty = [lists.isLoading ? "…" : "There are no lists yet: new NAME"]
            return (["LISTS"] + (rows.isEmpty ? empty : rows), lists.rows.map(\.id))
        case .list(let list):
            let rows = list.items.enumerated().map { number, item in
                "\(number + 1)  [\(item.isDone ? "x" : " ")] \(item.text)\(item.note.isEmpty ? "" : " …")"
            }
            let empty = [list.isLoading ? "…" : "Nothing is on this list: add TEXT"]
            return ([list.name.uppercased()] + (rows.isEmpty ? empty : rows), list.items.map(\.id))
        case .item(let model, let list):
            let title = list.name.uppercased()
            guard let item = model.item else {
                return ([title, model.isLoading ? "…" : "Somebody has removed this item."], [])
            }
            let note = item.note.split(separator: "\n").map { "   \($0)" }
            return ([title, item.text, item.isDone ? "done" : "open"] + note, [])
        case .sharing:
            var lines = ["SHARING", sharing.isOnline ? "online" : "offline"]
            lines += sharing.devices.enumerated().map { "\($0 + 1)  \($1.name): \($1.state.text)" }
            if let code = sharing.code, let digits = code.digits, let url = code.urls.first {
                lines.append("On the other device: join \(digits) \(url.absoluteString)")
            }
            return (lines, sharing.devices.map(\.id))
        }
    }

    private var trouble: String? {
        switch place {
        case .lists: lists.trouble
        case .list(let list): list.trouble
        case .item(let item, _): item.trouble
        case .sharing: sharing.trouble
        }
    }

    /// The screen's text. What peers wrote cannot control the terminal.
    var text: String {
        let lines = content.lines + [remark, trouble.map { "! \($0)" }].compactMap(\.self)
        return lines.map { $0.map { $0.isPrintable ? String($0) : "?" }.joined() + "\n" }.joined()
    }

    /// Whether something has not been read yet.
    var isLoading: Bool {
        switch place {
        case .lists: lists.isLoading
        case .list(let list): list.isLoading
        case .item(let item, _): item.isLoading
        case .sharing: false
        }
    }

    /// Returns the text, and remembers what its numbers mean.
    func show() -> String {
        seen = content.ids
        defer { remark = nil }
        return text
    }

    // MARK: Commands

    private static let general = "back · share · help · quit"

    private var help: String {
        switch place {
        case .lists: "NUMBER opens a list · new NAME · remove NUMBER"
        case .list: "NUMBER shows an item · add TEXT · done NUMBER · remove NUMBER · rename NAME"
        case .item: "text TEXT · note TEXT · done · remove"
        case .sharing: "code · join CODE · join DIGITS URL · forget NUMBER · online · offline · retry"
        }
    }

    /// Carries out a line that the person typed. Returns false for the end.
    func perform(_ line: String) async -> Bool {
        let words = line.split(separator: " ", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
        let (command, rest) = (words.first?.lowercased() ?? "", words.count > 1 ? words[1] : "")
        switch command {
        case "": return true
        case "quit": return false
        case "back": if places.count > 1 { places.removeLast() }
        case "share": if case .sharing = place {} else { places.append(.sharing) }
        case "help": remark = "\(help) · \(Self.general)"
        default:
            if await !perform(command, rest) {
                remark = "“\(line)” does not work here: \(help) · \(Self.general)"
            }
        }
        return true
    }

    private func id(_ number: String) -> String? {
        guard let number = Int(number), seen.indices.contains(number - 1) else { return nil }
        return seen[number - 1]
    }

    /// Carries out a command of this screen. Returns false if there is none.
    private func perform(_ command: String, _ rest: String) async -> Bool {
        // A number that opens something is a command by itself.
        let (opened, meant) = (id(command), id(rest))
        switch (place, command) {
        case (.lists, "new") where !rest.isEmpty:
            if let id = await lists.add(rest) { places.append(.list(ListModel(lists.store, list: id))) }
        case (.lists, "remove"):
            guard let meant else { return false }
            await lists.remove(meant)
        case (.lists, _):
            guard let opened else { return false }
            places.append(.list(ListModel(lists.store, list: opened)))
        case (.list(let list), "add") where !rest.isEmpty: await list.add(rest)
        case (.list(let list), "rename") where !rest.isEmpty: await list.rename(rest)
        case (.list(let list), "done"):
            guard let item = list.items.first(where: { $0.id == meant }) else { return false }
            await list.toggle(item)
        case (.list(let list), "remove"):
            guard let meant else { return false }
            await list.remove(meant)
        case (.list(let list), _):
            guard let opened else { return false }
            places.append(.item(ItemModel(list.store, item: opened), in: list))
        case (.item(let item, _), "text") where !rest.isEmpty: await item.set(text: rest)
        case (.item(let item, _), "note"): await item.set(note: rest)
        case (.item(let item, _), "done"): await item.set(isDone: item.item?.isDone != true)
        case (.item(let item, _), "remove"):
            await item.remove()
            places.removeLast()
        case (.sharing, "code"): await sharing.showCode()
        case (.sharing, "join") where !rest.isEmpty:
            let words = rest.split(separator: " ").map(String.init)
            await sharing.join(words[0], url: words.count > 1 ? words[1] : nil)
        case (.sharing, "forget"):
            guard let meant else { return false }
            await sharing.forget(meant)
        case (.sharing, "online"): await sharing.goOnline()
        case (.sharing, "offline"): await sharing.goOffline()
        case (.sharing, "retry"): await sharing.retry()
        default: return false
        }
        return true
    }
}

extension Character {
    /// Whether a terminal shows it, and does nothing else.
    fileprivate var isPrintable: Bool {
        unicodeScalars.allSatisfy {
            switch $0.properties.generalCategory {
            case .control, .lineSeparator, .paragraphSeparator, .surrogate: false
            // Joins emoji and letters; the others change the direction of the text around them.
            case .format: $0.value == 0x200C || $0.value == 0x200D
            default: true
            }
        }
    }
}
