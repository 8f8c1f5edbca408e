import HTTPTypes
import HummingbirdCore
import Loveseat
import NIOCore

/// Server-sent events (HTML Standard §9.2).
package enum EventStream {
    private static let keepAlive = Duration.seconds(15)
    private static let maximumWaiting = 256
    private static let reconnectMilliseconds = 1_000

    /// An event of a stream.
    package struct Event: Sendable {
        package let number: Int?
        package let name: String
        package let json: JSONObject

        package init(number: Int? = nil, name: String, json: JSONObject) {
            self.number = number
            self.name = name
            self.json = json
        }

        /// JSON text has no line ends, so that one line of data is enough.
        package var text: String {
            let id = number.map { "id: \($0)\n" } ?? ""
            return "\(id)event: \(name)\ndata: \(JSONValue.object(json))\n\n"
        }
    }

    /// The number of the last event that a browser got before its connection broke; 0 if it connects for the first time.
    package static func lastNumber(_ request: WebRequest) -> Int {
        request.header("Last-Event-ID").flatMap { Int($0) } ?? 0
    }

    /// A reply that goes on until the events end, or the browser disconnects.
    package static func reply(
        _ request: WebRequest,
        first: [Event],
        then events: some AsyncSequence<Event, Never> & Sendable
    ) -> WebReply {
        let headers = [
            (name: "Content-Type", value: "text/event-stream"), (name: "Cache-Control", value: "no-store"),
            (name: "X-Accel-Buffering", value: "no"),
        ]
        return WebReply(
            .ok,
            headers,
            .stream(length: nil) { writer in
                let shared = writer
                try await request.incoming.consumeWithCancellationOnInboundClose { _ in
                    try await send(first, events, to: shared)
                }
            }
        )
    }

    private enum Step: Sendable {
        case event(Event)
        case keepAlive
    }

    private static func send(
        _ first: [Event],
        _ events: some AsyncSequence<Event, Never> & Sendable,
        to writer: any ResponseBodyWriter
    ) async throws {
        var writer = writer
        try await writer.write(ByteBuffer(string: "retry: \(reconnectMilliseconds)\n\n: photodrop\n\n"))
        for event in first { try await writer.write(ByteBuffer(string: event.text)) }
        // A reader that is too slow for this is cut, and gets the rest when it connects again.
        let (steps, step) = AsyncStream<Step>.makeStream(bufferingPolicy: .bufferingOldest(maximumWaiting))
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for await event in events {
                    if case .dropped = step.yield(.event(event)) { break }
                }
                step.finish()
            }
            group.addTask {
                while (try? await Task.sleep(for: keepAlive)) != nil { step.yield(.keepAlive) }
            }
            defer { group.cancelAll() }
            for await next in steps {
                switch next {
                case .event(let event): try await writer.write(ByteBuffer(string: event.text))
                case .keepAlive: try await writer.write(ByteBuffer(string: ": still here\n\n"))
                }
            }
        }
    }
}
