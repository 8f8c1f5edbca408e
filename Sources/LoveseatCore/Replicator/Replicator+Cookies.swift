private import Foundation
import LoveseatModel
import LoveseatStorage
import Synchronization

extension Replicator {
    private static let key = "cookies"

    /// Cookies with an expiration are stored in the database; others live as long as this replicator.
    func cookieStorage() throws(LoveseatError) -> CookieStorage {
        guard let database = config.collections.first?.collection.database else {
            throw LoveseatError(.invalidParameter, "no collections")
        }
        let store = try database.store
        return CookieStorage(
            acceptsParentDomain: config.acceptParentDomainCookie,
            load: { [weak self] in
                // If the stored cookies cannot be read, the server asks for credentials again.
                let kept = (try? store.readSettings { try $0.info(Self.key) }).flatMap { $0 }
                var jar = kept.flatMap { try? JSONText(Array($0.utf8)) }.map { CookieJar($0) } ?? CookieJar()
                let now = Int64(Date().timeIntervalSince1970)
                for cookie in self?.state.withLock({ $0.cookies.cookies }) ?? [] { jar.add(cookie, now: now) }
                return jar
            },
            add: { [weak self] cookies in
                let now = Int64(Date().timeIntervalSince1970)
                self?.state.withLock { state in for cookie in cookies { state.cookies.add(cookie, now: now) }
                }
                if cookies.allSatisfy({ $0.expires == nil }) { return }
                // If a cookie cannot be stored, the server sets it again.
                try? Self.change(store) { jar in for cookie in cookies { jar.add(cookie, now: now) } }
            },
            remove: { [weak self] host, path in
                self?.state.withLock { $0.cookies.remove(host: host, path: path) }
                // A cookie that stays is refused again, and removed then.
                try? Self.change(store) { $0.remove(host: host, path: path) }
            }
        )
    }

    private static func change(_ store: DocumentStore, _ change: (inout CookieJar) -> Void) throws {
        try store.write(call: "replication") { transaction in
            // A damaged jar is begun anew.
            let kept = try transaction.info(key).flatMap { try? JSONText(Array($0.utf8)) }
            let old = kept.map { CookieJar($0) } ?? CookieJar()
            var jar = old
            change(&jar)
            if jar != old { try transaction.setInfo(key, jar.json.description) }
        }
    }
}
