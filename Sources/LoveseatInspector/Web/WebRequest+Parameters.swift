import LoveseatModel
import LoveseatWeb

extension WebRequest {
    /// A parameter that must be there.
    func required(_ name: String) throws(LoveseatError) -> String {
        guard let value = query[ExactText(name)] else {
            throw LoveseatError(.invalidParameter, "the parameter \(name) is missing")
        }
        return value
    }

    /// A number in a range; the default if the parameter is not there.
    func number(_ name: String, in range: ClosedRange<Int>, default standard: Int) throws(LoveseatError)
        -> Int
    {
        guard let text = query[ExactText(name)] else { return standard }
        guard let number = Int(text), range.contains(number) else {
            throw LoveseatError(
                .invalidParameter,
                "\(name) must be a number from \(range.lowerBound) to \(range.upperBound)"
            )
        }
        return number
    }

    /// The body as a JSON object, which may have a document in it.
    func json() throws(LoveseatError) -> JSONElement {
        do throws(JSONError) { return try JSONElement(scanning: body, limits: .envelope) } catch {
            throw LoveseatError(error, in: "the request's body")
        }
    }
}
