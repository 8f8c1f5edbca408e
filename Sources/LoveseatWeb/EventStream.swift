public import LoveseatModel

/// Server-sent events (HTML Standard §9.2).
public enum EventStream {
    private static let keepAlive = Duration.seconds(15)
    private static let maximumWaiting = 256
    private static let reconnectMilliseconds = 1_000

    /// An event of a stream.
    public struct Event: Sendable {
        /// The number that a browser repeats when it connects again; nil for an event that it need not know of then.
        public let number: Int?
        /// The event's type.
        public let name: String
        /// The event's data.
        public let json: JSONValue

        /// Creates an event.
        public init(number: Int? = nil, name: String, json: JSONValue) {
            self.number = number
            self.name = name
            self.json = json
        }

        /// JSON text has no line ends, so that one line of data is enough.
        var text: String {
            let id = number.map { "id: \($0)\n" } ?? ""
            return "\(id)event: \(name)\ndata: \(json)\n\n"
        }
    }

    private enum Step: Sendable {
        case event(Event)
        case keepAlive
    }

    /// Returns the number of the last event that a browser got before its connection broke; 0 if it connects for the first time.
    public static func lastNumber(_ request: WebRequest) -> Int {
        request.header("Last-Event-ID").flatMap { Int($0) } ?? 0
    }

    /// Creates a reply that continues until the events end, or the browser disconnects.
    public static func reply(
        first: [Event] = [],
        then events: some AsyncSequence<Event, Never> & Sendable
    ) -> WebReply {
        let headers = [
            (name: "Content-Type", value: "text/event-stream"), (name: "Cache-Control", value: "no-store"),
            (name: "X-Accel-Buffering", value: "no"),
        ]
        return WebReply(
            .ok,
            headers,
            .stream(length: nil) { writer in try await send(first, events, to: writer) }
        )
    }

    private static func send(
        _ first: [Event],
        _ events: some AsyncSequence<Event, Never> & Sendable,
        to writer: WebReply.Writer
    ) async throws {
        try await writer.write("retry: \(reconnectMilliseconds)\n\n".utf8)
        for event in first { try await writer.write(event.text.utf8) }
        // A reader that is too slow for this is disconnected, and gets the rest, or the state as it is, when it connects again.
        let (steps, step) = AsyncStream<Step>.makeStream(bufferingPolicy: .bufferingOldest(maximumWaiting))
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for await event in events {
                    if case .dropped = step.yield(.event(event)) { break }
                }
                step.finish()
            }
            group.addTask {
                // The sleep fails when the stream ends.
                while (try? await Task.sleep(for: keepAlive)) != nil { step.yield(.keepAlive) }
            }
            defer { group.cancelAll() }
            for await next in steps {
                switch next {
                case .event(let event): try await writer.write(event.text.utf8)
                case .keepAlive: try await writer.write(": still here\n\n".utf8)
                }
            }
        }
    }
}
