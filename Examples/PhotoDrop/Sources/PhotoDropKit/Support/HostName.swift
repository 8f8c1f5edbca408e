import Foundation

/// The name of this computer, for people.
package enum HostName {
    package static var short: String {
        let name = ProcessInfo.processInfo.hostName
        return String(name.prefix { $0 != "." })
    }
}
