import CouchbaseLiteSwift
import Dispatch
import Foundation
import Testing

/// What getters return of documents that were saved, and of those that were not.
@Suite(.ownThreads) struct GetterTests {
    private let world: World

    init() throws { world = try World() }

    private static var data: [String: Any] {
        [
            "string": "text", "empty": "", "int": 7, "fraction": 1.99, "yes": true, "no": false, "zero": 0,
            "null": NSNull(), "least": Int64.min, "most": Int64.max, "list": [1, "two"], "map": ["a": 1],
            "date": "2026-03-01T09:30:00.250Z", "second": "2026-03-01T09:30:00Z",
        ]
    }

    private func both() throws -> [Document] {
        let document = MutableDocument(id: "tower", data: Self.data)
        return [document, try world.reloaded(document)]
    }

    @Test func `missing values and those of another kind are nil, zero or false`() throws {
        for document in try both() {
            for key in ["nowhere", "null"] {
                #expect(document.string(forKey: key) == nil)
                #expect(document.number(forKey: key) == nil)
                #expect(document.int(forKey: key) == 0)
                #expect(document.double(forKey: key) == 0)
                #expect(!document.boolean(forKey: key))
                #expect(document.date(forKey: key) == nil)
                #expect(document.blob(forKey: key) == nil)
                #expect(document.array(forKey: key) == nil)
                #expect(document.dictionary(forKey: key) == nil)
            }
            #expect(document.value(forKey: "nowhere") == nil)
            #expect(document.value(forKey: "null") is NSNull)
            #expect(document.int(forKey: "string") == 0)
            #expect(document.string(forKey: "int") == nil)
        }
    }

    @Test func `an integer getter cuts fractions off, and is exact at both ends`() throws {
        for document in try both() {
            #expect(document.int(forKey: "fraction") == 1)
            #expect(document.int64(forKey: "least") == .min)
            #expect(document.int64(forKey: "most") == .max)
            #expect(document.int(forKey: "yes") == 1)
            #expect(document.double(forKey: "yes") == 1)
            #expect(document.number(forKey: "yes") == 1)
            #expect(document.float(forKey: "int") == 7)
        }
    }

    @Test func `everything but missing, null, false and zero is true`() throws {
        for document in try both() {
            for key in ["string", "empty", "int", "fraction", "yes", "list", "map"] {
                #expect(document.boolean(forKey: key), "\(key)")
            }
            for key in ["no", "zero", "null", "nowhere"] { #expect(!document.boolean(forKey: key), "\(key)") }
        }
    }

    @Test func `a number casts to every type that represents it`() throws {
        for document in try both() {
            let seven = try #require(document.value(forKey: "int"))
            #expect(seven is NSNumber)
            #expect(seven as? Int == 7)
            #expect(seven as? Int64 == 7)
            #expect(seven as? Int32 == 7)
            #expect(seven as? Double == 7)
            #expect(document.value(forKey: "yes") as? Bool == true)
        }
    }

    @Test func `the precision of floating numbers survives a save`() throws {
        let document = MutableDocument().setFloat(1.99, forKey: "float").setDouble(0.1, forKey: "double")
        let reloaded = try world.reloaded(document)
        #expect(reloaded.float(forKey: "float") == 1.99)
        #expect(reloaded.double(forKey: "double") == 0.1)
        #expect(reloaded.toJSON().contains(#""double":0.1"#))
    }

    @Test func `dates are read with and without a fraction`() throws {
        for document in try both() {
            let date = try #require(document.date(forKey: "date"))
            let second = try #require(document.date(forKey: "second"))
            #expect(abs(date.timeIntervalSince(second) - 0.25) < 0.001)
            #expect(document.date(forKey: "string") == nil)
        }
    }

    @Test func `a nested object is the same one at each call`() throws {
        for document in try both() {
            #expect(document.dictionary(forKey: "map") === document.dictionary(forKey: "map"))
            #expect(document.array(forKey: "list") === document.value(forKey: "list") as? ArrayObject)
        }
        let (mutable, stored) = (try both()[0], try both()[1])
        #expect(mutable.value(forKey: "map") is MutableDictionaryObject)
        #expect(!(stored.value(forKey: "map") is MutableDictionaryObject))
    }

    @Test func `keys, counts and iteration agree`() throws {
        for document in try both() {
            #expect(document.count == Self.data.count)
            #expect(Set(document.keys) == Set(Self.data.keys))
            #expect(Set(document) == Set(Self.data.keys))
            #expect(document.contains(key: "null"))
            #expect(!document.contains(key: "nowhere"))
            let list = try #require(document.array(forKey: "list"))
            #expect(list.count == 2)
            #expect(list.map { $0 }.count == 2)
            #expect(list.int(at: 0) == 1)
            #expect(list.string(at: 1) == "two")
            #expect(list.value(at: 2) == nil)
        }
    }

    @Test func `toDictionary gives plain values`() throws {
        for document in try both() {
            let plain = document.toDictionary()
            #expect(plain["map"] as? [String: Int] == ["a": 1])
            #expect((plain["list"] as? [Any])?.count == 2)
            #expect(plain["null"] is NSNull)
            #expect(plain["string"] as? String == "text")
        }
    }

    @Test func `several threads may read a stored document, and get the same objects`() throws {
        let data: [String: Any] = ["map": ["a": ["b": 1]], "list": [["c": 2], [3]]]
        let stored = try world.reloaded(MutableDocument(data: data))
        let found = Heard<[ObjectIdentifier]>()
        // It is only read, which any thread may do.
        nonisolated(unsafe) let document = stored
        DispatchQueue.concurrentPerform(iterations: 64) { _ in
            let objects: [AnyObject?] = [
                document.dictionary(forKey: "map"), document["map"]["a"].dictionary,
                document.array(forKey: "list"), document["list"][0].dictionary, document["list"][1].array,
            ]
            found.add(objects.compactMap { $0.map(ObjectIdentifier.init) })
        }
        #expect(found.all.count == 64)
        #expect(Set(found.all).count == 1)
        #expect(found.all.first?.count == 5)
    }
}
