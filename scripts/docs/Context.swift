public import Foundation
public import Loveseat

// What the examples in the documentation refer to without declaring it. Only type-checked, never run; see check-docs.sh.

public struct Sight: Codable, Identifiable, Sendable {
    public var id: String
    public var city: String
    public var likes: Int

    public init(id: String, city: String, likes: Int) {
        self.id = id
        self.city = city
        self.likes = likes
    }
}

public struct Photo: Codable, Identifiable, Sendable {
    public var id: String
    public var image: BlobReference?
}

public struct Place: DocumentModel, Sendable {
    public var id: String
    public var city: String
    public var likes: Int
}

// SwiftUI's names, which the examples with views use.
@MainActor public protocol View {
    associatedtype Body: View
    @MainActor var body: Body { get }
}
extension Never: View { public var body: Never { given() } }
public struct Text: View {
    public init(_ text: String) {}
    public var body: Never { given() }
}
public struct List<Row: View>: View {
    public init<Item: Identifiable>(_ items: [Item], row: (Item) -> Row) {}
    public var body: Never { given() }
}

func given<T>() -> T { fatalError() }

public let database: Database = given()
public let copy: Database = given()
public let accounts: Loveseat.Collection = given()
public let album: Loveseat.Collection = given()
public let customers: Loveseat.Collection = given()
public let orders: Loveseat.Collection = given()
public let places: Loveseat.Collection = given()
public let sights: Loveseat.Collection = given()
nonisolated(unsafe) public var document: Document = given()
nonisolated(unsafe) public var query: Query = given()
nonisolated(unsafe) public var from: Document = given()
nonisolated(unsafe) public var to: Document = given()

nonisolated(unsafe) public var configuration: ReplicatorConfiguration = given()
nonisolated(unsafe) public var entry: CollectionConfiguration = given()
nonisolated(unsafe) public var serving: URLEndpointListenerConfiguration = given()
public let authenticator: ListenerPairingAuthenticator = given()
public let identity: TLSIdentity = given()
public let listener: URLEndpointListener = given()
public let peer: PairedPeer = given()
public let replicator: Replicator = given()
public let resolver: any ConflictResolverProtocol = given()
public let url: URL = given()

public let jpeg: Data = given()
public let password: String = given()
public let photos: [Photo] = given()
public let scanned: String = given()

public func show(_ qrCode: String, _ digits: String?) {}
public func show(_ photo: Data) {}
public func gracefulShutdown() async throws {}
public func refresh(_ documentIDs: [String]) async {}
public func reload() async {}
public func confirm(_ question: String) async -> Bool { given() }
