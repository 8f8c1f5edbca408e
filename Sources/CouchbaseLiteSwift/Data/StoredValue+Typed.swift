import Foundation
import LoveseatModel

// The types of values that setters have.
extension _StoredValue {
    init(_ value: String?) { self = value.map { _StoredValue(.scalar(.string($0))) } ?? .null }
    init(_ value: NSNumber?) { self = value.map { _StoredValue(.scalar(JSONValue($0))) } ?? .null }
    init(_ value: Int) { self.init(.scalar(.number(.integer(Int64(value))))) }
    init(_ value: Int64) { self.init(.scalar(.number(.integer(value)))) }
    init(_ value: Float) { self.init(Double(value)) }
    init(_ value: Double) { self.init(.scalar(.number(.double(value)))) }
    init(_ value: Bool) { self.init(.scalar(.bool(value))) }
    init(_ value: Date?) { self = value.map { _StoredValue(.scalar(JSONValue($0))) } ?? .null }
    init(_ value: Blob?) { self = value.map { _StoredValue(.blob($0)) } ?? .null }
    init(_ value: ArrayObject?) { self.init(any: value) }
    init(_ value: DictionaryObject?) { self.init(any: value) }
}
