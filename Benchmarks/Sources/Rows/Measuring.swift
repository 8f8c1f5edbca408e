import Foundation
import Loveseat

/// Seconds that work takes.
func seconds(_ work: () throws -> Void) rethrows -> Double {
    let clock = ContinuousClock()
    let start = clock.now
    try work()
    return (clock.now - start).inSeconds
}

extension Duration {
    var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}

extension [Double] {
    var median: Double { isEmpty ? .nan : sorted()[count / 2] }
}

/// A folder that is gone afterwards.
final class Scratch: Sendable {
    let path: String

    init() throws {
        path = FileManager.default.temporaryDirectory.appending(path: "loveseat-bench-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func database(_ name: String) throws -> Database {
        try Database(name: name, config: DatabaseConfiguration(directory: path))
    }
}

/// The resident memory of a process in bytes.
func residentBytes(of process: Int32) -> Int {
    let status = (try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
    return (line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) } ?? 0) * 1_024
}

/// A document of about a kilobyte, as JSON text, different for each number.
func sampleText(_ number: Int) -> String {
    """
    {"active":true,"address":{"city":"Paris","lat":48.8584,"lon":2.2945,"street":"5 Avenue Anatole France"},\
    "description":"\(String(repeating: "The tower was built for a world fair. ", count: 16))",\
    "likes":\(number),"name":"Tower \(number)","rating":4.75,"tags":["iron","high","old","crowded"],\
    "visits":[\((0..<20).map { String(number &* 7 &+ $0) }.joined(separator: ","))]}
    """
}

/// One line of the table.
public struct Row: Sendable {
    public let work: String
    /// What was measured, in `unit`.
    public let ours: Double
    public let unit: String
    /// What it is measured against, in the same unit; nil where a limit is absolute.
    public let base: Double?
    /// The least ratio, or the limit.
    public let floor: Double
    /// Whether less is better.
    public let isCeiling: Bool

    static func ratio(_ work: String, _ ours: Double, of base: Double, unit: String, floor: Double) -> Row {
        Row(work: work, ours: ours, unit: unit, base: base, floor: floor, isCeiling: false)
    }

    static func limit(_ work: String, _ value: Double, unit: String, atMost limit: Double) -> Row {
        Row(work: work, ours: value, unit: unit, base: nil, floor: limit, isCeiling: true)
    }

    static func speed(_ work: String, _ value: Double, unit: String, atLeast limit: Double) -> Row {
        Row(work: work, ours: value, unit: unit, base: nil, floor: limit, isCeiling: false)
    }

    /// What is compared with the floor.
    public var figure: Double { base.map { ours / $0 } ?? ours }
    public var isMet: Bool { isCeiling ? figure <= floor : figure >= floor }

    /// As the table of README.md has it.
    public var line: String {
        let measured = base.map { "\(ours.brief) against \($0.brief) \(unit)" } ?? "\(ours.brief) \(unit)"
        let limit = base != nil ? floor.brief : "\(isCeiling ? "≤" : "≥") \(floor.brief) \(unit)"
        let ratio = base == nil ? "" : figure.brief
        return "| \(work) | \(measured) | \(ratio) | \(limit) | \(isMet ? "yes" : "**no**") |"
    }
}

extension Double {
    var brief: String {
        if abs(self) >= 100 { return String(Int(rounded())) }
        return String(format: abs(self) >= 10 ? "%.1f" : "%.2f", self)
    }
}
