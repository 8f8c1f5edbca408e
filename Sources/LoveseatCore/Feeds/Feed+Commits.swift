import LoveseatModel
import LoveseatStorage

extension Feed {
    /// Subscribes to the commits of collections, until the database closes or one of the collections is deleted.
    init(
        of collections: [Collection],
        in database: Database,
        _ buffer: FeedBuffer<Element>,
        _ notify: @escaping @Sendable ([String]) -> Void
    ) throws(LoveseatError) {
        var subscriptions: [(hub: ChangeHub, token: Int)] = []
        do {
            for collection in collections {
                let hub = try collection.openStore().changes
                let token = hub.subscribe(
                    collection: collection.handle.number,
                    onClose: { buffer.finish() },
                    { notify($0.documentIDs) }
                )
                subscriptions.append((hub, token))
            }
        } catch {
            for (hub, token) in subscriptions { hub.unsubscribe(token) }
            throw error
        }
        let number = database.session.endWhenClosed { buffer.finish() }
        self.init(buffer) { [subscriptions] in
            for (hub, token) in subscriptions { hub.unsubscribe(token) }
            database.session.forgetFeed(number)
        }
    }
}
