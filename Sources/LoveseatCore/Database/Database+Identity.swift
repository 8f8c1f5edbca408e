import LoveseatModel
import LoveseatStorage

extension Database {
    /// A random ID of 32 hexadecimal digits that other peers may know.
    package var publicID: String {
        get throws(LoveseatError) {
            let store = try store
            return try DocumentStore.wrapping { try store.readSettings { try $0.info("public_uuid") ?? "" } }
        }
    }
}
