import Foundation
import Loveseat
import LoveseatWeb
import PhotoDropCore
import Synchronization

/// The page of a sender: photos with check marks, of which the marked ones are sent.
package final class SendPage: Sendable {
    /// Takes the text of a code, and returns the receiver's name in it, if there is one.
    package typealias SetCode = @Sendable (String) throws -> String?
    package typealias Send =
        @Sendable ([PhotoDocument], @escaping @Sendable (SendEvent) -> Void) async throws -> Void

    private struct State {
        var isSending = false
        var needsCode: Bool
        var receiverName: String?
        var photos: [String: PhotoProgress] = [:]
        var readers = StreamReaders<EventStream.Event>()
    }

    private static let maximumWaiting = 256

    private let shelf: PhotoShelf
    private let photos: [PhotoDocument]
    private let setCode: SetCode
    private let send: Send
    private let onStop: @Sendable () -> Void
    private let state: Mutex<State>

    /// - Parameters:
    ///   - shelf: The database with the photos.
    ///   - photos: The photos to choose from.
    ///   - receiverName: The receiver's name in its code.
    ///   - needsCode: Whether the page asks for the code.
    ///   - setCode: Called with it.
    ///   - send: Sends the chosen photos.
    ///   - onStop: Called when the page is done.
    package init(
        _ shelf: PhotoShelf,
        photos: [PhotoDocument],
        receiverName: String?,
        needsCode: Bool,
        setCode: @escaping SetCode,
        send: @escaping Send,
        onStop: @escaping @Sendable () -> Void
    ) {
        self.shelf = shelf
        self.photos = photos
        self.setCode = setCode
        state = Mutex(State(needsCode: needsCode, receiverName: receiverName))
        self.send = send
        self.onStop = onStop
    }

    package func respond(_ request: WebRequest) async throws -> WebReply {
        switch request.path.first {
        case "send" where request.isPost: return begin(request)
        case "code" where request.isPost: return try take(code: String(decoding: request.body, as: UTF8.self))
        case "stop" where request.isPost:
            onStop()
            return .text(.ok, "stopping")
        case _ where request.isPost: return .notFound
        case nil: return .content("text/html; charset=utf-8", PackageResources.send_html)
        case "page.css": return .content("text/css; charset=utf-8", PackageResources.page_css)
        case "send.js": return .content("text/javascript; charset=utf-8", PackageResources.send_js)
        case "thumbnails.js":
            return .content("text/javascript; charset=utf-8", PackageResources.thumbnails_js)
        case "events": return events()
        case "photo":
            guard request.path.count == 2, let photo = photos.first(where: { $0.id == request.path[1] })
            else {
                return .notFound
            }
            return try PhotoResponse.reply(request, photo.photo, name: photo.name, in: shelf.database)
        default: return .notFound
        }
    }

    private func take(code: String) throws -> WebReply {
        let name = try setCode(code)
        let isNew = state.withLock { state in
            guard state.needsCode else { return false }
            (state.needsCode, state.receiverName) = (false, name)
            return true
        }
        guard isNew else { return .text(.conflict, "there is a code already") }
        publish(.init(name: "code", json: name.map { ["receiver": .string($0)] } ?? [:]))
        return .text(.ok, "the code is right")
    }

    /// Begins to send the photos whose IDs are in the body, a JSON array.
    private func begin(_ request: WebRequest) -> WebReply {
        guard let ids = try? JSONDecoder().decode([String].self, from: Data(request.body)) else {
            return .text(.badRequest, "the body has to be an array of IDs")
        }
        let wanted = Set(ids)
        let chosen = photos.filter { wanted.contains($0.id) }
        guard !chosen.isEmpty else { return .text(.badRequest, "choose at least one photo") }
        guard !state.withLock({ $0.needsCode }) else {
            return .text(.conflict, "enter the receiver's code first")
        }
        let isFree = state.withLock { state in
            defer { state.isSending = true }
            return !state.isSending
        }
        guard isFree else { return .text(.conflict, "photos are being sent: wait until they are there") }
        Task {
            var error: String?
            do { try await send(chosen) { self.take($0) } } catch let failure {
                error = (failure as? DropError)?.message ?? "\(failure)"
            }
            state.withLock { $0.isSending = false }
            publish(.init(name: "idle", json: error.map { ["error": .string($0)] } ?? [:]))
        }
        return .text(.accepted, "sending")
    }

    private func take(_ event: SendEvent) {
        if case .photo(let photo) = event { state.withLock { $0.photos[photo.id] = photo } }
        let name = if case .photo = event { "progress" } else { "state" }
        publish(.init(name: name, json: .object(event.json)))
    }

    private func publish(_ event: EventStream.Event) {
        for reader in state.withLock({ $0.readers.yield(event) }) { reader.finish() }
    }

    private func events() -> WebReply {
        let (live, reader) = AsyncStream<EventStream.Event>.makeStream(
            bufferingPolicy: .bufferingOldest(Self.maximumWaiting)
        )
        let current = state.withLock { state in
            let key = state.readers.add(reader)
            reader.onTermination = { [weak self] _ in self?.state.withLock { $0.readers.remove(key) } }
            return state.photos.values.map { EventStream.Event(name: "progress", json: .object($0.json)) }
        }
        return EventStream.reply(first: [hello] + current, then: live)
    }

    private var hello: EventStream.Event {
        let list = photos.map { photo -> JSONValue in
            var json: JSONObject = [
                "id": .string(photo.id), "name": .string(photo.name), "size": JSONValue(photo.size),
            ]
            if let width = photo.info.width, let height = photo.info.height {
                (json["width"], json["height"]) = (JSONValue(width), JSONValue(height))
            }
            return .object(json)
        }
        var json: JSONObject = ["photos": .array(list)]
        let (needsCode, receiverName) = state.withLock { ($0.needsCode, $0.receiverName) }
        if needsCode { json["needsCode"] = true }
        if let receiverName { json["receiver"] = .string(receiverName) }
        return .init(name: "hello", json: .object(json))
    }
}
