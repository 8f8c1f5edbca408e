import HTTPTypes
import HummingbirdCore
import LoveseatModel
import NIOCore

/// Server-sent events (HTML Standard §9.2).
enum EventStream {
    private static let keepAlive = Duration.seconds(15)
    private static let maximumWaiting = 64
    private static let reconnectMilliseconds = 1_000

    /// An event of a stream.
    struct Event: Sendable {
        let name: String
        let json: JSONValue

        /// JSON text has no line ends, so that one line of data is enough.
        var text: String { "event: \(name)\ndata: \(json)\n\n" }
    }

    private enum Step: Sendable {
        case event(Event)
        case keepAlive
    }

    /// A reply that continues until the events end, or the browser disconnects.
    static func reply(_ request: WebRequest, _ events: some AsyncSequence<Event, Never> & Sendable)
        -> WebReply
    {
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
                    try await send(events, to: shared)
                }
            }
        )
    }

    private static func send(
        _ events: some AsyncSequence<Event, Never> & Sendable,
        to writer: any ResponseBodyWriter
    ) async throws {
        var writer = writer
        try await writer.write(
            ByteBuffer(string: "retry: \(reconnectMilliseconds)\n\n: loveseat inspector\n\n")
        )
        // A reader that is too slow for this is disconnected, and gets the state as it is when it connects again.
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
                case .event(let event): try await writer.write(ByteBuffer(string: event.text))
                case .keepAlive: try await writer.write(ByteBuffer(string: ": still here\n\n"))
                }
            }
        }
    }
}
