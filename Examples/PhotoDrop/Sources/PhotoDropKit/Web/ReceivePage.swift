import Loveseat
import LoveseatWeb
import PhotoDropCore

/// The page of a receiver: the code, the senders, and the photos as they arrive.
package struct ReceivePage: Sendable {
    /// Eight browsers, and the terminal.
    private static let maximumReaders = 9

    private let receiver: Receiver
    private let code: String
    private let level: QRCode.Level
    private let thumbnails: ThumbnailMaker?

    /// `code`: the text of the session's code. `level`: of the QR code.
    package init(
        _ receiver: Receiver,
        code: String,
        level: QRCode.Level = .medium,
        thumbnails: ThumbnailMaker?
    ) {
        self.receiver = receiver
        self.code = code
        self.level = level
        self.thumbnails = thumbnails
    }

    package func respond(_ request: WebRequest) async throws -> WebReply {
        if request.isPost { return try await change(request) }
        switch request.path.first {
        case nil: return .content("text/html; charset=utf-8", PackageResources.receive_html)
        case "page.css": return .content("text/css; charset=utf-8", PackageResources.page_css)
        case "receive.js": return .content("text/javascript; charset=utf-8", PackageResources.receive_js)
        case "thumbnails.js":
            return .content("text/javascript; charset=utf-8", PackageResources.thumbnails_js)
        case "qr.svg":
            let svg = try QRCode(code, level: level).svg()
            return .content("image/svg+xml", Array(svg.utf8))
        case "code": return .content("text/plain; charset=utf-8", Array(code.utf8))
        case "events": return try events(request)
        case "photos.json": return photos
        case "photo": return try photo(request)
        case "thumb": return try await thumbnail(request)
        default: return .notFound
        }
    }

    private func change(_ request: WebRequest) async throws -> WebReply {
        switch request.path.first {
        case "stop":
            receiver.stop()
            return .text(.ok, "stopping")
        case "forget":
            guard request.path.count == 2 else { return .notFound }
            try await receiver.saver.forget(request.path[1])
            return .text(.ok, "forgotten")
        default: return .notFound
        }
    }

    /// What the events begin with.
    private var session: JSONObject {
        var session: JSONObject = [
            "session": .string(receiver.record.id), "folder": .string(receiver.folder),
        ]
        if let name = receiver.options.name { session["name"] = .string(name) }
        if receiver.options.deletesFiles { session["deletesFiles"] = true }
        return session
    }

    private func events(_ request: WebRequest) throws -> WebReply {
        guard receiver.hub.readerCount < Self.maximumReaders else {
            return .text(.serviceUnavailable, "this page is open too often: close a tab")
        }
        let (missed, live) = receiver.hub.subscribe(after: EventStream.lastNumber(request))
        let first = [EventStream.Event(name: "hello", json: .object(session))] + missed.map(Self.event)
        return EventStream.reply(first: first, then: live.map(Self.event))
    }

    /// The session as it is, for programs that do not follow the events.
    private var photos: WebReply {
        var json = session
        json["senders"] = .array(receiver.hub.senders.map { .object($0.json) })
        json["photos"] = .array(receiver.hub.photos.map { .object($0) })
        return .content("application/json", Array("\(JSONValue.object(json))".utf8))
    }

    private static func event(_ entry: EventHub.Entry) -> EventStream.Event {
        EventStream.Event(number: entry.number, name: entry.event.name, json: .object(entry.event.json))
    }

    private func received(_ request: WebRequest) throws -> ReceivedPhoto? {
        guard request.path.count == 2,
            let document = try receiver.database.defaultCollection().document(id: request.path[1])
        else { return nil }
        return ReceivedPhoto(document)
    }

    private func photo(_ request: WebRequest) throws -> WebReply {
        guard let photo = try received(request) else { return .notFound }
        return try PhotoResponse.reply(request, photo.blob, name: photo.name, in: receiver.database)
    }

    /// The sender's thumbnail, or our own. The page makes one itself if there is none.
    private func thumbnail(_ request: WebRequest) async throws -> WebReply {
        guard let photo = try received(request) else { return .notFound }
        if let thumbnail = photo.thumbnail,
            let length = try? receiver.database.blobLength(thumbnail),
            length <= ReceivedPhoto.maximumThumbnail,
            let start = try? receiver.database.blobContent(thumbnail, in: 0..<UInt64(ImageType.sniffedBytes)),
            ImageType(sniffing: start) == .jpeg
        {
            return try PhotoResponse.reply(request, thumbnail, name: photo.name, in: receiver.database)
        }
        guard let bytes = await thumbnails?.thumbnail(of: photo.blob, in: receiver.database) else {
            return .notFound
        }
        var reply = WebReply.content("image/jpeg", bytes)
        reply.headers = [
            ("Content-Type", "image/jpeg"), ("Cache-Control", "private, max-age=31536000, immutable"),
        ]
        return reply
    }
}
