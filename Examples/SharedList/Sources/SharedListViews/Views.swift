#if canImport(SwiftUI)
import Loveseat
import SharedListKit
import SwiftUI

/// The app: `WindowGroup { SharedListApp(folder: .applicationSupportDirectory) }`.
public struct SharedListApp: View {
    private let folder: URL
    @State private var models: (lists: ListsModel, sharing: SharingModel)?
    @State private var problem: String?
    @Environment(\.scenePhase) private var phase

    /// Creates the app, which keeps its lists in a folder.
    public init(folder: URL) { self.folder = folder }

    /// The lists, when they have been opened.
    public var body: some View {
        if let models {
            ListsView(model: models.lists, sharing: models.sharing)
                // An app in the background has no network.
                .onChange(of: phase) { _, phase in
                    Task {
                        if phase == .background { await models.sharing.goOffline() }
                        if phase == .active { await models.sharing.goOnline() }
                    }
                }
        } else if let problem {
            Problem(text: problem)
        } else {
            ProgressView().task {
                do {
                    let store = try await ListStore.open(
                        folder: folder,
                        identities: TLSIdentity.standardStore
                    )
                    let sharing = try SharingModel(store)
                    models = (ListsModel(store), sharing)
                    await sharing.goOnline()
                } catch { problem = (error as? LoveseatError)?.message ?? error.localizedDescription }
            }
        }
    }
}

struct ListsView: View {
    let model: ListsModel
    let sharing: SharingModel
    @State private var name = ""

    var body: some View {
        NavigationStack {
            List {
                ForEach(model.rows) { row in
                    NavigationLink(value: row.id) { LabeledContent(row.name, value: "\(row.open)") }
                }
                .onDelete { rows in
                    let ids = rows.map { model.rows[$0].id }
                    Task { for id in ids { await model.remove(id) } }
                }
                TextField("New list", text: $name).onSubmit {
                    let new = name
                    name = ""
                    Task { await model.add(new) }
                }
                Problem(text: model.trouble)
            }
            .navigationTitle("Lists")
            .navigationDestination(for: String.self) { ListView(model: ListModel(model.store, list: $0)) }
            .toolbar { NavigationLink("Share") { SharingView(model: sharing) } }
        }
    }
}

struct ListView: View {
    @State var model: ListModel
    @State private var text = ""

    var body: some View {
        List {
            ForEach(model.items) { item in
                HStack {
                    Button("Done", systemImage: item.isDone ? "checkmark.circle.fill" : "circle") {
                        Task { await model.toggle(item) }
                    }
                    .labelStyle(.iconOnly).buttonStyle(.plain)
                    NavigationLink(item.text) { ItemView(model: ItemModel(model.store, item: item.id)) }
                }
            }
            .onDelete { rows in
                let ids = rows.map { model.items[$0].id }
                Task { for id in ids { await model.remove(id) } }
            }
            TextField("New item", text: $text).onSubmit {
                let new = text
                text = ""
                Task { await model.add(new) }
            }
            Problem(text: model.trouble)
        }
        .navigationTitle(model.name)
    }
}

struct ItemView: View {
    @State var model: ItemModel
    @State private var text = ""
    @State private var note = ""

    var body: some View {
        Form {
            TextField("Text", text: $text).onSubmit { [text] in Task { await model.set(text: text) } }
            TextField("Note", text: $note).onSubmit { [note] in Task { await model.set(note: note) } }
            Toggle(
                "Done",
                isOn: Binding {
                    model.item?.isDone ?? false
                } set: { isDone in
                    Task { await model.set(isDone: isDone) }
                }
            )
            Problem(text: model.trouble)
        }
        // Also when somebody else changes them.
        .onChange(of: model.item, initial: true) { _, item in
            (text, note) = (item?.text ?? "", item?.note ?? "")
        }
    }
}

struct SharingView: View {
    let model: SharingModel
    @State private var digits = ""
    @State private var url = ""

    var body: some View {
        Form {
            Section("Devices") {
                ForEach(model.devices) { LabeledContent($0.name, value: $0.state.text) }
                    .onDelete { rows in
                        let ids = rows.map { model.devices[$0].id }
                        Task { for id in ids { await model.forget(id) } }
                    }
                Button("Try again") { Task { await model.retry() } }
            }
            Section("Add a device") {
                if let code = model.code {
                    // The text is what a QR code would contain.
                    LabeledContent(code.digits ?? "", value: code.urls.first?.absoluteString ?? "")
                    ShareLink(item: code.text)
                } else {
                    Button("Show a code") { Task { await model.showCode() } }
                }
                TextField("Six digits", text: $digits)
                TextField("wss://…", text: $url)
                Button("Use the code") { Task { await model.join(digits, url: url) } }
            }
            Problem(text: model.trouble)
        }
        .navigationTitle("Share")
    }
}

/// What went wrong, if anything did.
struct Problem: View {
    let text: String?

    var body: some View {
        if let text { Label(text, systemImage: "exclamationmark.triangle").foregroundStyle(.red) }
    }
}
#endif
