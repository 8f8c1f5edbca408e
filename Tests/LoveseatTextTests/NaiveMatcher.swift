/// Matches by trying everything in the order of preference, as the standards describe it.
final class NaiveMatcher {
    typealias Groups = [Int: Range<Int>]
    typealias Continuation = (Int, Groups) -> Groups?

    let text: [Unicode.Scalar]
    let isPCRE: Bool
    private(set) var steps = 0
    static let maximumSteps = 20_000

    init(_ text: String, isPCRE: Bool) {
        self.text = Array(text.unicodeScalars)
        self.isPCRE = isPCRE
    }

    /// Returns where the first match and its groups are; nil without a match, or after too many steps.
    func firstMatch(_ expression: RandomExpression) -> Groups? {
        for start in 0...text.count {
            let found = match(expression, start, [:]) { end, groups in
                groups.merging([0: start..<end]) { _, new in new }
            }
            if let found { return found }
        }
        return nil
    }

    private func isWord(_ position: Int) -> Bool {
        text.indices.contains(position) && "ab".unicodeScalars.contains(text[position])
    }

    private func match(
        _ expression: RandomExpression,
        _ position: Int,
        _ groups: Groups,
        _ then: Continuation
    ) -> Groups? {
        steps += 1
        guard steps < Self.maximumSteps else { return nil }
        let next = position < text.count ? text[position] : nil
        func after(_ holds: Bool) -> Groups? { holds ? then(position, groups) : nil }
        func over(_ fits: (Unicode.Scalar) -> Bool) -> Groups? {
            next.map(fits) == true ? then(position + 1, groups) : nil
        }
        switch expression {
        case .scalar(let scalar): return over { $0 == scalar }
        case .any: return over { $0 != "\n" }
        case .set(let scalars, let isNegated): return over { scalars.contains($0) != isNegated }
        case .start: return after(position == 0)
        case .end:
            return after(
                position == text.count || isPCRE && position == text.count - 1 && text[position] == "\n"
            )
        case .wordBoundary(let wanted): return after((isWord(position - 1) != isWord(position)) == wanted)
        case .sequence(let parts): return match(parts[...], position, groups, then)
        case .either(let parts):
            for part in parts {
                if let found = match(part, position, groups, then) { return found }
            }
            return nil
        case .group(let group, let inner):
            return match(inner, position, groups) { end, groups in
                then(end, groups.merging([group: position..<end]) { _, new in new })
            }
        case .repeated(let inner, let minimum, let maximum, let isLazy):
            return match(inner, minimum, maximum, isLazy, position, groups, then)
        case .look(let isNegated, let inner):
            let found = match(inner, position, groups) { _, groups in groups }
            guard (found == nil) == isNegated else { return nil }
            return then(position, found ?? groups)
        case .backreference(let group):
            let wanted = groups[group].map { text[$0] } ?? []
            return text[position...].starts(with: wanted) ? then(position + wanted.count, groups) : nil
        }
    }

    private func match(
        _ parts: ArraySlice<RandomExpression>,
        _ position: Int,
        _ groups: Groups,
        _ then: Continuation
    ) -> Groups? {
        guard let first = parts.first else { return then(position, groups) }
        return match(first, position, groups) { position, groups in
            self.match(parts.dropFirst(), position, groups, then)
        }
    }

    private func match(
        _ inner: RandomExpression,
        _ minimum: Int,
        _ maximum: Int?,
        _ isLazy: Bool,
        _ position: Int,
        _ groups: Groups,
        _ then: Continuation
    ) -> Groups? {
        func again() -> Groups? {
            guard maximum != 0 else { return nil }
            return self.match(inner, position, groups) { end, groups in
                // A repetition without a limit does not repeat what is empty.
                if minimum == 0, maximum == nil, end == position { return nil }
                return self.match(
                    inner,
                    max(0, minimum - 1),
                    maximum.map { $0 - 1 },
                    isLazy,
                    end,
                    groups,
                    then
                )
            }
        }
        if minimum > 0 { return again() }
        return isLazy ? then(position, groups) ?? again() : again() ?? then(position, groups)
    }
}
