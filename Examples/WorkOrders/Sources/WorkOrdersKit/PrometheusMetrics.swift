import Metrics
import Synchronization

/// A small backend for swift-metrics that renders Prometheus' text format.
///
/// Counters become counters, meters and gauges become gauges, timers (in seconds) and recorders become summaries without quantiles.
package final class PrometheusMetrics: MetricsFactory {
    private struct Key: Hashable {
        let name: String
        /// `{method="GET",route="/x"}`, or nothing.
        let labels: String
    }

    private let series = Mutex<[Key: Series]>([:])

    package init() {}

    /// All metrics, in the order of their names.
    package var text: String {
        let all = series.withLock { $0 }.sorted {
            ($0.key.name, $0.key.labels) < ($1.key.name, $1.key.labels)
        }
        var (text, previous) = ("", "")
        for (key, series) in all {
            if key.name != previous { text += "# TYPE \(key.name) \(series.kind)\n" }
            previous = key.name
            let (value, count) = series.current
            if series.kind == .summary {
                text += "\(key.name)_sum\(key.labels) \(value)\n\(key.name)_count\(key.labels) \(count)\n"
            } else {
                text += "\(key.name)\(key.labels) \(value)\n"
            }
        }
        return text
    }

    private func series(_ kind: Series.Kind, _ label: String, _ dimensions: [(String, String)]) -> Series {
        let labels = dimensions.map { name, value in
            let escaped = value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing(
                "\n",
                with: "\\n"
            )
            return "\(Self.name(name))=\"\(escaped)\""
        }
        let key = Key(
            name: Self.name(label) + (kind == .counter ? "_total" : ""),
            labels: labels.isEmpty ? "" : "{\(labels.joined(separator: ","))}"
        )
        return series.withLock { all in
            if let series = all[key] { return series }
            let series = Series(kind)
            all[key] = series
            return series
        }
    }

    /// Prometheus' names have letters, digits and underscores.
    private static func name(_ label: String) -> String {
        String(label.map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" })
    }

    package func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        series(.counter, label, dimensions)
    }

    package func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        series(.gauge, label, dimensions)
    }

    package func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool)
        -> any RecorderHandler
    {
        series(aggregate ? .summary : .gauge, label, dimensions)
    }

    package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        series(.summary, label, dimensions)
    }

    // A metric keeps its value for as long as the program runs.
    package func destroyCounter(_ handler: any CounterHandler) {}
    package func destroyMeter(_ handler: any MeterHandler) {}
    package func destroyRecorder(_ handler: any RecorderHandler) {}
    package func destroyTimer(_ handler: any TimerHandler) {}
}

/// One metric with one set of labels.
private final class Series: CounterHandler, MeterHandler, RecorderHandler, TimerHandler {
    enum Kind: String {
        case counter, gauge, summary
    }

    let kind: Kind
    private let state = Mutex<(value: Double, count: Int)>((0, 0))

    init(_ kind: Kind) { self.kind = kind }

    var current: (value: Double, count: Int) { state.withLock { $0 } }

    private func add(_ value: Double) { state.withLock { $0 = ($0.value + value, $0.count + 1) } }

    func increment(by amount: Int64) { add(Double(amount)) }
    func increment(by amount: Double) { add(amount) }
    func decrement(by amount: Double) { add(-amount) }
    func reset() { state.withLock { $0 = (0, 0) } }
    func set(_ value: Int64) { set(Double(value)) }
    func set(_ value: Double) { state.withLock { $0 = (value, $0.count + 1) } }
    func record(_ value: Int64) { record(Double(value)) }
    func record(_ value: Double) { if kind == .gauge { set(value) } else { add(value) } }
    func recordNanoseconds(_ duration: Int64) { add(Double(duration) / 1_000_000_000) }
}
