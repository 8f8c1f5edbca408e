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
    private var content: (lines: [String], ids: [String], problem: String?) {
        switch place {
        case .lists:
            let rows = lists.rows.enumerated().map {
                "\($0 + 1)  \($1.name)  \($1.open) open, \($1.done) done"
            }
            let empty = lists.isLoading ? "…" : "There are no lists yet: new NAME"
            return (
                ["LISTS"] + (rows.isEmpty ? [empty] : rows), lists.rows.map(\.id),
                lists.problem ?? lists.failure
            )
        case .list(let list):
            let rows = list.items.enumerated().map { number, item in
                "\(number + 1)  [\(item.isDone ? "x" : " ")] \(item.text)\(item.note.isEmpty ? "" : " …")"
            }
            let empty = list.isLoading ? "…" : "Nothing is on this list: add TEXT"
            let title = list.name.uppercased()
            return (
                [title] + (rows.isEmpty ? [empty] : rows), list.items.map(\.id), list.problem ?? list.failure
            )
        case .item(let model, let list):
            guard let item = model.item else {
                return (
                    [list.name, model.isLoading ? "…" : "Somebody has removed this item."], [],
                    model.problem ?? model.failure
                )
            }
            let note = item.note.split(separator: "\n").map { "   \($0)" }
            let lines = [list.name.uppercased(), item.text, item.isDone ? "done" : "open"] + note
            return (lines, [], model.problem ?? model.failure)
        case .sharing:
            var lines = ["SHARING", sharing.isOnline ? "online" : "offline"]
            lines += sharing.devices.enumerated().map { "\($0 + 1)  \($1.name): \($1.state.text)" }
            if let code = sharing.code {
                lines.append(
                    "On the other device: join \(code.digits ?? "") \(code.urls.first?.absoluteString ?? "")"
                )
            }
            return (lines, sharing.devices.map(\.id), sharing.problem)
        }
    }

    /// The screen's text. What peers wrote cannot control the terminal.
    var text: String {
        let content = content
        let lines = content.lines + [remark, content.problem.map { "! \($0)" }].compactMap(\.self)
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
            let isKnown =
                switch place {
                case .lists: await perform(command, rest, on: lists)
                case .list(let list): await perform(command, rest, on: list)
                case .item(let item, _): await perform(command, rest, on: item)
                case .sharing: await perform(command, rest, on: sharing)
                }
            if !isKnown { remark = "“\(line)” does not work here: \(help) · \(Self.general)" }
        }
        return true
    }

    private func id(_ number: String) -> String? {
        guard let number = Int(number), seen.indices.contains(number - 1) else { return nil }
        return seen[number - 1]
    }

    private func open(list id: String) {
        do { places.append(.list(try ListModel(lists.store, list: id))) } catch { remark = "! \(error)" }
    }

    private func perform(_ command: String, _ rest: String, on lists: ListsModel) async -> Bool {
        switch command {
        case "new" where !rest.isEmpty: if let id = await lists.add(rest) { open(list: id) }
        case "remove":
            guard let id = id(rest) else { return false }
            await lists.remove(id)
        default:
            guard let id = id(command) else { return false }
            open(list: id)
        }
        return true
    }

    private func perform(_ command: String, _ rest: String, on list: ListModel) async -> Bool {
        switch command {
        case "add" where !rest.isEmpty: await list.add(rest)
        case "rename" where !rest.isEmpty: await list.rename(rest)
        case "done":
            guard let id = id(rest), let item = list.items.first(where: { $0.id == id }) else { return false }
            await list.toggle(item)
        case "remove":
            guard let id = id(rest) else { return false }
            await list.remove(id)
        default:
            guard let id = id(command) else { return false }
            places.append(.item(ItemModel(list.store, item: id), in: list))
        }
        return true
    }

    private func perform(_ command: String, _ rest: String, on model: ItemModel) async -> Bool {
        switch command {
        case "text" where !rest.isEmpty: await model.set(text: rest)
        case "note": await model.set(note: rest)
        case "done": await model.set(isDone: !(model.item?.isDone ?? false))
        case "remove":
            await model.remove()
            places.removeLast()
        default: return false
        }
        return true
    }

    private func perform(_ command: String, _ rest: String, on sharing: SharingModel) async -> Bool {
        switch command {
        case "code": await sharing.showCode()
        case "join" where !rest.isEmpty:
            let words = rest.split(separator: " ").map(String.init)
            await sharing.join(words[0], url: words.count > 1 ? words[1] : nil)
        case "forget":
            guard let id = id(rest) else { return false }
            await sharing.forget(id)
        case "online": await sharing.goOnline()
        case "offline": await sharing.goOffline()
        case "retry": await sharing.retry()
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
